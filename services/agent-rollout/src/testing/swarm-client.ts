/** For tests: a client of episodes that does one request at a time, as any program can. */

import type { LentEpisodeFacts } from "../domain/swarm/lent-episode.ts";

/** Key of the operator in tests. */
export const SWARM_KEY = "a-key-of-the-operator";

export interface Answer {
  readonly status: number;
  /** The error's code; undefined for a success. */
  readonly code: string | undefined;
  readonly body: Record<string, unknown>;
}

export interface AskOptions {
  readonly key?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Sends a body, as JSON unless it is a text. */
export async function ask(url: string, body: unknown, { key, signal }: AskOptions = {}): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
  const text = await response.text();
  const parsed = (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  const { error } = parsed as { error?: { code?: string } };
  return { status: response.status, code: error?.code, body: parsed };
}

/** @param baseUrl address of agent-rollout. */
export function begin(
  baseUrl: string,
  run: string,
  claim: string,
  options: AskOptions & { readonly waitMs?: number } = {},
): Promise<Answer> {
  const { waitMs = 10_000, ...rest } = options;
  return ask(`${baseUrl}/runs/${run}/episodes`, { claim, waitMs }, { key: SWARM_KEY, ...rest });
}

export function factsOf({ status, body }: Answer): LentEpisodeFacts {
  if (status !== 200) throw new Error(`no episode: ${status} ${JSON.stringify(body)}`);
  return body as unknown as LentEpisodeFacts;
}

/** One call of the model. */
export function call({ session }: LentEpisodeFacts, content = "01", key = session.key): Promise<Answer> {
  const messages = [{ role: "user", content }];
  return ask(`${session.openaiBaseUrl}/chat/completions`, { model: session.model, messages }, { key });
}

/** @param verb `end`, `abort` or `heartbeat`. */
export function tell({ episode }: LentEpisodeFacts, verb: string, body: unknown = {}): Promise<Answer> {
  return ask(`${episode.url}/${verb}`, body, { key: episode.key });
}
