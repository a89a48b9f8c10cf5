/** Makes what judges need, for use outside of the service. */

import { readCodeGate } from "@hone/config";
import { PythonSandbox } from "@hone/sandbox";
import type { JudgeParts } from "./domain/judge-parts.ts";
import { TestRunners } from "./domain/judges/python/test-runners.ts";
import { judgeKeys } from "./judge-keys.ts";

/** @param filesDir the folder that contains modules. Disposing of the result ends the processes that judges started. */
export function openJudgeParts(
  filesDir: string,
  environment: Readonly<Record<string, string | undefined>>,
): JudgeParts & AsyncDisposable {
  const sandbox = new PythonSandbox();
  const testRunners = new TestRunners(new PythonSandbox());
  return {
    filesDir,
    gate: readCodeGate(environment, filesDir),
    keys: judgeKeys(environment),
    sandbox,
    testRunners,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([sandbox.close(), testRunners.close()]);
    },
  };
}
