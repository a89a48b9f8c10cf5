/** Reads from the tracer's API. */

/** An answer that is not a success; `status` is 0 when there was no answer. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** Reads the JSON at a path. @throws {ApiError}, or the reason of the signal when it aborts. */
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
    // The answer is not JSON of the tracer, as when it comes from a proxy; only its status can be shown.
    return `The tracer answered with status ${answer.status}.`;
  }
}
