/** Reads from the tracer's API, and writes what people add. */

/** An answer that is not a success; `status` is 0 when there was no answer. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** Parameters of a query; empty ones are left out. */
export type Query = Readonly<Record<string, string | number | null | undefined>>;

export interface ReadOptions {
  readonly signal?: AbortSignal | undefined;
  readonly query?: Query;
}

/** Reads the JSON at a path. @throws {ApiError}, or the reason of the signal when it aborts. */
// The API and the page are one release, so its answers are not checked again here.
export async function read<Value>(path: string, { signal, query = {} }: ReadOptions = {}): Promise<Value> {
  const search = searchOf(query);
  return ask(`${path}${search === "" ? "" : `?${search}`}`, { signal: signal ?? null });
}

/**
 * Sends a change. The browser says in `Sec-Fetch-Site` that it comes from this page; the type of the body is one that forms of
 * other sites cannot send.
 * @throws {ApiError}
 */
export async function send<Value>(
  method: "POST" | "DELETE",
  path: string,
  body: unknown = {},
): Promise<Value> {
  return ask(path, { method, body: JSON.stringify(body), headers: { "content-type": "application/json" } });
}

/** The text of a query without its empty parameters. */
export function searchOf(query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value));
  }
  return parameters.toString();
}

/** The path of a run in the API, and of what lies below it. */
export function runPath(runId: string, ...parts: readonly (string | number)[]): string {
  return ["", "runs", runId, ...parts].map((part) => encodeURIComponent(part)).join("/");
}

async function ask<Value>(path: string, init: RequestInit): Promise<Value> {
  let answer: Response;
  try {
    answer = await fetch(`/api${path}`, {
      ...init,
      headers: { accept: "application/json", ...init.headers },
    });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError(0, "The tracer does not answer.");
  }
  if (answer.ok) return (await answer.json()) as Value;
  throw new ApiError(answer.status, await messageOf(answer));
}

async function messageOf(answer: Response): Promise<string> {
  try {
    const { error } = (await answer.json()) as { error: { message: string } };
    return error.message;
  } catch {
    // The answer is not JSON of the tracer, as when it comes from a proxy; only its status can be shown.
    return `The tracer answered with status ${answer.status}.`;
  }
}
