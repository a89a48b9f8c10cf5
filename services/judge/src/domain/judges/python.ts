/**
 * The judge `python`: runs the answer's code and the row's tests in the sandbox.
 *
 * Y1: the code is the answer's last fenced block, or the whole answer where it has none. The tests are the ground truth, in
 *     one of the forms of `row-tests.ts`.
 * Y2: the answer's code has an interpreter of its own. Tests run, and results are compared, in other processes, which get
 *     only plain data from it.
 * Y3: what the code does to itself (errors, endless loops, too much memory, ending its own process) fails the test, as the
 *     policy must not learn to have bad answers left out. It is an infrastructure failure if the sandbox is not available, if
 *     its processes are repeatedly killed from outside, and if the tests are unusable.
 */

import { JudgeError } from "../../errors.ts";
import { lastFenced } from "../fenced.ts";
import { groundTruthOf } from "../ground-truth.ts";
import type { Judge } from "../judge.ts";
import type { ConfigOf, JudgeParts } from "../judge-parts.ts";
import { solutionOf } from "../judged-episode.ts";
import { ConversationLostError } from "./python/conversation.ts";
import type { Grades } from "./python/grade.ts";
import { gradePrograms } from "./python/grade-programs.ts";
import { gradeTests } from "./python/grade-tests.ts";
import { rowTestsOf } from "./python/row-tests.ts";

/** Most gradings of one answer; a grading is repeated if its processes are killed from outside. */
const MAX_TRIES = 3;

/** @throws {JudgeError} where there is no sandbox. */
export function pythonJudge({ kind, score, timeMs }: ConfigOf<"python">, parts: JudgeParts): Judge {
  const { sandbox: answers, testRunners: tests } = parts;
  if (answers === undefined || tests === undefined) {
    throw new JudgeError(kind, "the judge python cannot run here: this process has no sandbox for code");
  }
  const isAll = score === "all";
  return async function judgeByTests(episode, { signal }) {
    const rowTests = rowTestsOf(groundTruthOf(episode, kind), isAll);
    const solution = solutionOf(episode);
    const code = lastFenced(solution) ?? solution;
    const options = { timeMs, isAll, signal };
    const grades = await withTries(() =>
      rowTests.kind === "code"
        ? gradeTests(code, rowTests.tests, { answers, tests }, options)
        : gradePrograms(code, rowTests.tests, answers, options),
    );
    const value = isAll ? Number(grades.share === 1) : grades.share;
    return { value, ...(grades.reason === undefined ? {} : { reason: grades.reason }) };
  };
}

/** Y3 */
async function withTries(grade: () => Promise<Grades>): Promise<Grades> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await grade();
    } catch (error) {
      if (!(error instanceof ConversationLostError)) throw error;
      if (attempt === MAX_TRIES) throw new JudgeError("python", `${error.message}, ${MAX_TRIES} times`);
    }
  }
}
