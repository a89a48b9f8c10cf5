/**
 * The protocol between the sandbox and its child processes, on the child's standard input and output.
 *
 * sandbox -> child, each as length (4 bytes, little endian) and payload:
 *   a StartOrder as JSON, then each of its files, then the nonce (16 bytes, no length)
 *   then, for each run: a RunOrder as JSON and the run's nonce; an answer (UTF-8) to each call
 * child -> sandbox: length of what follows (4 bytes), nonce (16 bytes), kind (1 byte), payload:
 *   a snapshot (memory of a started Python), the reason why a package cannot be part of one (UTF-8), or a frame that says that
 *   it is ready; then, for each run: calls (UTF-8), and
 *   one result (a FinishedRun as JSON)
 */

export const NONCE_BYTES = 16;
/** Python's memory at the start is 30 MiB; the modules of packages add to it (sympy: 60). */
export const MAX_SNAPSHOT_BYTES = 192 * 1024 * 1024;
/** Kinds of frames that a child sends. */
export const FrameKind = { snapshot: 1, ready: 2, done: 3, call: 4, failed: 5 } as const;

export interface StartOrder {
  /** Names of the files that follow; if none is named `snapshot`, the child makes a snapshot and exits. */
  readonly files: readonly string[];
  readonly maxMemoryBytes: number;
  /** Packages beside the standard library; their wheels are among the files. */
  readonly packages: readonly PackageOrder[];
}

/** One package. */
export interface PackageOrder {
  /** Name of its wheel among the files. */
  readonly file: string;
  /** Whether it must be unpacked, as it holds code for WebAssembly. */
  readonly isCompiled: boolean;
  /** What a snapshot imports, so that no start has to. */
  readonly modules: readonly string[];
}

export interface RunOrder {
  readonly code: string;
  readonly maxOutputBytes: number;
  readonly stdin: string;
  /** Whether the code has `host_call`. */
  readonly mayCall: boolean;
}

/** The result of code that ended by itself. The code's process reports it, so the code may have chosen every part of it. */
export interface FinishedRun {
  /** What it printed to both streams, in order, cut at the limit of bytes. */
  readonly output: string;
  readonly isOutputCut: boolean;
  /** `repr` of the last expression; empty if there is none or its value is None. */
  readonly value: string;
  /** Traceback of the exception that ended it; undefined if it reached its end. */
  readonly error: string | undefined;
}
