/** Errors, async helpers, time limits, ids, seeds and names. This package depends on no other. */

export { boundedFetch } from "./async/bounded-fetch.ts";
export { BoundedQueue } from "./async/bounded-queue.ts";
export { deadline } from "./async/deadline.ts";
export type { WaitOptions } from "./async/delay.ts";
export { delay } from "./async/delay.ts";
export { endThread } from "./async/end-thread.ts";
export { allowedMs, extendDeadlines } from "./async/extend-deadlines.ts";
export { type JsonCall, type JsonCallOptions, jsonCall, RemoteUnavailableError } from "./async/json-call.ts";
export { pause } from "./async/pause.ts";
export { raceAbortable } from "./async/race-abortable.ts";
export { AnswerTooLongError, readBytes, readText } from "./async/read-text.ts";
export type { RetryOptions } from "./async/retry.ts";
export { retry } from "./async/retry.ts";
export { Semaphore } from "./async/semaphore.ts";
export { Turnstile } from "./async/turnstile.ts";
export { cacheFolder } from "./cache-folder.ts";
export {
  DeadlineError,
  describeError,
  fileRefusal,
  HoneError,
  InvalidInputError,
  isDiskFull,
  RetryableError,
  TerminalError,
  unreachable,
} from "./errors.ts";
export type { Slot } from "./ids.ts";
export {
  compareSlots,
  groupIdOf,
  groupKey,
  isRunName,
  messageIdOf,
  modelIdOf,
  parseSlotKey,
  rolloutIdOf,
  runIdOf,
  Split,
  slotKey,
  turnSeed,
} from "./ids.ts";
export { InterruptedError, interruptAfter } from "./interrupt.ts";
export { drawLogNormal } from "./log-normal.ts";
export { nearest } from "./nearest.ts";
export { isScorable, Outcome } from "./outcome.ts";
export { MAX_JSON_DEPTH, parseJson } from "./parse-json.ts";
export {
  parseScriptArguments,
  printUsage,
  type ScriptArguments,
  scriptArguments,
  UsageError,
} from "./script-arguments.ts";
export { secretCheck } from "./secret-check.ts";
export { deriveSeed, Random } from "./seed.ts";
