/** What judges are made from. */

import type { BoundKeys, CodeGate, JudgeConfig, JudgeKind } from "@hone/config";
import type { PythonSandbox } from "@hone/sandbox";
import type { Judge } from "./judge.ts";
import type { TestRunners } from "./judges/python/test-runners.ts";

/** The configuration of one kind of judge in the run file. */
export type ConfigOf<Kind extends JudgeKind> = Extract<JudgeConfig, { kind: Kind }>;

/** What judges need besides their configuration. */
export interface JudgeParts {
  /** HONE_FILES: the folder that contains reward models. */
  readonly filesDir: string;
  /** Decides which modules run files may name. */
  readonly gate: CodeGate;
  /** The keys of servers that judges call. */
  readonly keys: BoundKeys;
  /** Runs models' Python; absent = it cannot be run here. */
  readonly sandbox?: PythonSandbox;
  /** Run the rows' tests of models' Python; absent where there is no sandbox. */
  readonly testRunners?: TestRunners;
}

/** Makes a judge. @throws {Error} when it cannot be made, as when a file is missing. */
export type JudgeMaker<Kind extends JudgeKind> = (
  config: ConfigOf<Kind>,
  parts: JudgeParts,
) => Judge | Promise<Judge>;
