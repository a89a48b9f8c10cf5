/** OpenTelemetry's own complaints, passed on to Hone's logger without flooding it. */

import type { DiagLogger } from "@opentelemetry/api";
import type { Logger } from "./logger.ts";

/** A receiver that is away fails every batch: one line in this time says it, with the count of those left out. */
const QUIET_MS = 30_000;

/** @param now milliseconds; for tests. */
export function throttledDiagLogger(logger: Logger, now: () => number = Date.now): DiagLogger {
  let lastAt = Number.NEGATIVE_INFINITY;
  let leftOut = 0;
  const say = (message: string, details: unknown[]) => {
    const at = now();
    if (at - lastAt < QUIET_MS) {
      leftOut++;
      return;
    }
    logger.warn(`telemetry: ${message}`, {
      ...(details.length > 0 && { details }),
      ...(leftOut > 0 && { leftOut }),
    });
    lastAt = at;
    leftOut = 0;
  };
  const ignore = () => undefined;
  return {
    error: (message, ...details) => say(message, details),
    warn: (message, ...details) => say(message, details),
    info: ignore,
    debug: ignore,
    verbose: ignore,
  };
}
