/**
 * The judge `python`: the answer's code, run against the row's unit tests in the sandbox.
 *
 * Y1: the code is the answer's last fenced block, or the whole answer where it has none. The tests are the ground truth:
 *     Python that raises where the code is wrong, or a JSON list of such texts.
 * Y2: where each test counts, it runs after the code in a process of its own: no test sees what another did. Where all must
 *     pass they run one after the other in one.
 * Y3: what the code does to itself (errors, endless loops, too much memory, ending its own process) fails the test: code
 *     that could get itself left out would be no worse than code that fails. A sandbox that cannot be had, or whose process
 *     signals from outside end again and again, is an infrastructure failure.
 */

import { parseJson } from "@hone/core";
import type { PythonSandbox } from "@hone/sandbox";
import { JudgeError } from "../../errors.ts";
import { lastFenced } from "../fenced.ts";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import { solutionOf } from "../judged-episode.ts";
import type { ConfigOf, JudgeParts } from "../registry.ts";

/** Nobody reads it; what prints without end is ended by its time. */
const MAX_OUTPUT_BYTES = 4_096;
/** The value of the last line, which is reached only where nothing was raised before. */
const PASSED = "'passed'";

/** @throws {JudgeError} where there is no sandbox. */
export function pythonJudge({ kind, score, timeMs }: ConfigOf<"python">, { sandbox }: JudgeParts): Judge {
  if (sandbox === undefined) {
    throw new JudgeError(kind, "Cannot run Python as there must be a sandbox: current value is none");
  }
  const limits = { timeMs, maxOutputBytes: MAX_OUTPUT_BYTES };
  return async function judgeByTests(episode, { signal }) {
    const tests = testsIn(groundTruthOf(episode, kind));
    const solution = solutionOf(episode);
    const code = lastFenced(solution) ?? solution;
    const runs = score === "all" ? [tests.join("\n")] : tests; // Y2
    const passed = await Promise.all(
      runs.map((test) => passes(sandbox, `${code}\n${test}\n${PASSED}`, limits, signal)),
    );
    const share = passed.filter((isPassed) => isPassed).length / runs.length;
    return share;
  };
}

/** A list of texts where the ground truth is one as JSON, else itself; never empty. */
function testsIn(groundTruth: string): readonly string[] {
  try {
    const value = parseJson(groundTruth);
    const isList =
      Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string");
    if (isList) return value as string[];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return [groundTruth];
}

/** Y3 */
async function passes(
  sandbox: PythonSandbox,
  code: string,
  limits: Parameters<PythonSandbox["run"]>[1],
  signal: AbortSignal,
): Promise<boolean> {
  const result = await sandbox.run(code, limits, signal);
  switch (result.kind) {
    case "finished":
      return result.error === undefined && result.value === PASSED;
    case "timed_out":
    case "out_of_memory":
      return false;
    case "crashed":
      if (!result.isBySignal) return false;
      throw new JudgeError(
        "python",
        `Cannot judge the code as its sandbox must outlive it: current value is ${result.reason}`,
      );
  }
}
