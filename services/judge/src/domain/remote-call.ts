/** Requests to a server that judges, with the key that its run file names. */

import { type JsonCall, jsonCall } from "@hone/core";
import { counterOf, Instrument, traceHeaders } from "@hone/telemetry";
import type { ConfigOf, JudgeParts } from "./judge-parts.ts";

type RemoteConfig = Pick<ConfigOf<"http">, "deadlineMs" | "maxAttempts" | "concurrency" | "keyVariable">;

/** A grade with its reasons has only kilobytes. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const retries = counterOf(Instrument.retries).of({ part: "judge" });

/** @throws {InvalidInputError} when the key is not set, or may not be sent to the address. */
export function remoteCall(url: string, config: RemoteConfig, { keys }: JudgeParts): JsonCall {
  const { deadlineMs, maxAttempts, concurrency, keyVariable } = config;
  return jsonCall(url, {
    deadlineMs,
    maxAttempts,
    concurrency,
    maxAnswerBytes: MAX_ANSWER_BYTES,
    key: keyVariable === undefined ? undefined : keys.keyFor(keyVariable, url, "judge.keyVariable"),
    headers: () => traceHeaders(),
    onRetry: () => retries.add(),
  });
}
