/** What the engine's thread and its owner send each other. One call is in work at a time; answers carry its number. */
import type { TrainingEngine } from "../domain/step/training-engine.ts";

/** The calls that the thread answers; `close` ends the thread instead. */
export type EngineMethod = Exclude<keyof TrainingEngine, "close">;

/** Owner -> thread. */
export type ToEngine = EngineCall | { readonly kind: "end" };

export interface EngineCall {
  readonly kind: "call";
  readonly id: number;
  readonly method: EngineMethod;
  readonly args: readonly unknown[];
}

/** Thread -> owner. */
export type EngineAnswer =
  | { readonly id: number; readonly kind: "result"; readonly value: unknown }
  | { readonly id: number; readonly kind: "error"; readonly code: string; readonly message: string };
