/** What the sandbox and its child processes say to each other. */

/** sandbox -> child */
export type ToChild =
  /** The first message. */
  | {
      readonly kind: "start";
      /** Memory of a Python that has just started; absent = start one and send such a memory. */
      readonly snapshot: Uint8Array | undefined;
      readonly maxMemoryBytes: number;
    }
  | { readonly kind: "run"; readonly code: string; readonly maxOutputBytes: number };

/** child -> sandbox */
export type FromChild =
  | { readonly kind: "snapshot"; readonly snapshot: Uint8Array }
  | { readonly kind: "ready" }
  | { readonly kind: "done"; readonly result: FinishedRun };

/** What came of code that ended by itself. */
export interface FinishedRun {
  /** What it printed, both streams in their order; cut at the most bytes. */
  readonly output: string;
  readonly isOutputCut: boolean;
  /** `repr` of the last expression; empty where there is none, or it is None. */
  readonly value: string;
  /** Traceback of what it raised; undefined where it came to its end. */
  readonly error: string | undefined;
}
