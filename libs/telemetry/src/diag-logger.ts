/** What OpenTelemetry says about itself, passed on to Hone's logger without flooding it. */

import type { DiagLogger } from "@opentelemetry/api";
import type { Logger } from "./logger.ts";

/** A receiver that is away fails every batch: one line in this time says so, with the count of those left out. */
const QUIET_MS = 30_000;
/** Maximum number of kinds of messages that are distinguished; all further messages count as one kind. */
const MAX_KINDS = 64;

interface Kind {
  lastAt: number;
  leftOut: number;
}

/**
 * Errors and warnings become warnings, each kind once in a while; all else is passed on as it comes, as it only comes where
 * OTEL_LOG_LEVEL asks for it.
 * @param now milliseconds; for tests.
 */
export function throttledDiagLogger(logger: Logger, now: () => number = Date.now): DiagLogger {
  const kinds = new Map<string, Kind>();
  const kindOf = (message: string): Kind => {
    const text = message.replace(/\d+/g, "#");
    const name = kinds.has(text) || kinds.size < MAX_KINDS ? text : "any other";
    const kind = kinds.get(name) ?? { lastAt: Number.NEGATIVE_INFINITY, leftOut: 0 };
    kinds.set(name, kind);
    return kind;
  };
  const warn = (message: string, ...details: unknown[]) => {
    const kind = kindOf(message);
    const at = now();
    if (at - kind.lastAt < QUIET_MS) {
      kind.leftOut++;
      return;
    }
    logger.warn(`telemetry: ${message}`, {
      ...(details.length > 0 && { details }),
      ...(kind.leftOut > 0 && { leftOut: kind.leftOut }),
    });
    kind.lastAt = at;
    kind.leftOut = 0;
  };
  const say = (message: string, ...details: unknown[]) =>
    logger.info(`telemetry: ${message}`, details.length > 0 ? { details } : undefined);
  return { error: warn, warn, info: say, debug: say, verbose: say };
}
