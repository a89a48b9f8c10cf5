/**
 * The messages between the engine and its worker thread. All of them can be copied by structured cloning.
 *
 * Requests are posted together once per turn of the event loop, events once per engine step.
 */

import { describeError, TerminalError } from "@hone/core";
import {
  EngineBusyError,
  EngineFailedError,
  InvalidRequestError,
  PolicyLoadError,
  VersionBehindError,
  VersionStaleError,
} from "../domain/errors.ts";
import type { StepFigures } from "../domain/generation-metrics.ts";
import type {
  EngineGeneration,
  GenerateRequest,
  LoadedModel,
  LoadProgress,
  PolicySource,
  TokenChunk,
  VersionRange,
} from "../domain/inference-engine.ts";

/** What happened to a generation since the last step of the engine. */
export type EngineEvent =
  | ({ readonly kind: "tokens"; readonly id: string } & TokenChunk)
  | { readonly kind: "done"; readonly id: string; readonly result: EngineGeneration }
  | { readonly kind: "failed"; readonly id: string; readonly error: Error };

/** A request with what only the calling thread knows. */
export interface SubmittedRequest {
  readonly request: GenerateRequest;
  readonly isStreaming: boolean;
  /** On {@link sharedClock}. */
  readonly submittedAt: number;
}

/** Engine -> worker. */
export type ToWorker =
  | { readonly kind: "submit"; readonly requests: readonly SubmittedRequest[] }
  | { readonly kind: "abort"; readonly ids: readonly string[] }
  | { readonly kind: "load"; readonly call: number; readonly source: PolicySource }
  | { readonly kind: "unload"; readonly call: number; readonly model: string }
  | { readonly kind: "close"; readonly call: number };

/** Worker -> engine. `models` is the state after the step. */
export type FromWorker =
  | {
      readonly kind: "step";
      readonly events: readonly WireEvent[];
      readonly models: readonly LoadedModel[];
      /** Steps since the message before. */
      readonly steps: readonly StepFigures[];
    }
  | { readonly kind: "progress"; readonly call: number; readonly progress: LoadProgress }
  | {
      readonly kind: "answer";
      readonly call: number;
      readonly error: WireError | undefined;
      readonly models: readonly LoadedModel[];
    };

export type WireEvent =
  | ({ readonly kind: "tokens"; readonly id: string } & TokenChunk)
  | { readonly kind: "done"; readonly id: string; readonly result: EngineGeneration }
  | { readonly kind: "failed"; readonly id: string; readonly error: WireError };

/** An error of the port, as the parameters of its constructor. */
export type WireError =
  | { readonly kind: "invalid"; readonly path: string; readonly value: unknown; readonly rule: string }
  | { readonly kind: "busy"; readonly waiting: number }
  | {
      readonly kind: "behind";
      readonly model: string;
      readonly range: VersionRange;
      readonly newest: number | undefined;
    }
  | { readonly kind: "stale"; readonly model: string; readonly range: VersionRange; readonly newest: number }
  | { readonly kind: "load"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string };

/** Milliseconds on a clock that all threads of the process share. */
export function sharedClock(): number {
  return performance.timeOrigin + performance.now();
}

export function encodeError(error: unknown): WireError {
  if (error instanceof InvalidRequestError) {
    return { kind: "invalid", path: error.path, value: error.value, rule: error.allowed };
  }
  if (error instanceof EngineBusyError) return { kind: "busy", waiting: error.waiting };
  if (error instanceof VersionBehindError) {
    return { kind: "behind", model: error.model, range: error.range, newest: error.newest };
  }
  if (error instanceof VersionStaleError) {
    return { kind: "stale", model: error.model, range: error.range, newest: error.newest };
  }
  const kind = error instanceof PolicyLoadError ? "load" : "failed";
  return { kind, message: describeError(error) };
}

export function decodeError(error: WireError): Error {
  switch (error.kind) {
    case "invalid":
      return new InvalidRequestError(error.path, error.value, error.rule);
    case "busy":
      return new EngineBusyError(error.waiting);
    case "behind":
      return new VersionBehindError(error.model, error.range, error.newest);
    case "stale":
      return new VersionStaleError(error.model, error.range, error.newest);
    case "load":
      return new PolicyLoadError(error.message);
    case "failed":
      return new EngineFailedError(error.message);
    default:
      throw new TerminalError(
        "UNREACHABLE",
        `The engine thread sent an error of an unknown kind: ${error satisfies never}`,
      );
  }
}
