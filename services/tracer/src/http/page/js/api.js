/** Reading from the tracer. */

/** An answer that is no success; `status` 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** The JSON at a path. @throws {ApiError}, or what the signal says. */
export async function read(path, { signal, query = {} } = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value));
  }
  const suffix = parameters.size === 0 ? "" : `?${parameters}`;
  let answer;
  try {
    answer = await fetch(`/api${path}${suffix}`, { signal, headers: { accept: "application/json" } });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The tracer does not answer.");
  }
  if (answer.ok) return answer.json();
  throw new ApiError(answer.status, await messageOf(answer));
}

async function messageOf(answer) {
  try {
    const { error } = await answer.json();
    return error.message;
  } catch {
    // A proxy's answer, say; its status is all there is.
    return `The tracer answered ${answer.status}.`;
  }
}
