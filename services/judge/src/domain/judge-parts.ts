/** What judges are made of. */

import type { BoundKeys, CodeGate, JudgeConfig, JudgeKind } from "@hone/config";
import type { PythonSandbox } from "@hone/sandbox";
import type { Judge } from "./judge.ts";
import type { TestRunners } from "./judges/python/test-runners.ts";

/** What a run file says of a judge of one kind. */
export type ConfigOf<Kind extends JudgeKind> = Extract<JudgeConfig, { kind: Kind }>;

/** What judges are made with beside their part of the run file. */
export interface JudgeParts {
  /** HONE_FILES: folder below which reward models lie. */
  readonly filesDir: string;
  /** For modules that run files name. */
  readonly gate: CodeGate;
  /** Of programs outside. */
  readonly keys: BoundKeys;
  /** Runs the Python of models; absent = none can be run here. */
  readonly sandbox?: PythonSandbox;
  /** Run the tests of rows that the answers' Python must pass; absent where there is no sandbox. */
  readonly testRunners?: TestRunners;
}

/** Makes a judge. @throws {Error} when what the run file says of it cannot be had. */
export type JudgeMaker<Kind extends JudgeKind> = (
  config: ConfigOf<Kind>,
  parts: JudgeParts,
) => Judge | Promise<Judge>;
