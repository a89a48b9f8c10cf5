/**
 * The judge `python`: the answer's code against the row's tests, in the sandbox.
 *
 * Y1: the code is the answer's last fenced block, or the whole answer where it has none. The tests are the ground truth, in
 *     one of the forms of `row-tests.ts`.
 * Y2: the answer's code is alone in its interpreter. Who runs the tests, compares and says what passed is elsewhere, and
 *     gets nothing of it but plain data.
 * Y3: what the code does to itself (errors, endless loops, too much memory, ending its own process) fails the test: code
 *     that could get itself left out would be no worse than code that fails. A sandbox that cannot be had, or whose processes
 *     are ended from outside again and again, is an infrastructure failure, and so are tests that are none.
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

/** Gradings whose processes were ended from outside are made again; the third such end is no accident. */
const MAX_TRIES = 3;

/** @throws {JudgeError} where there is no sandbox. */
export function pythonJudge({ kind, score, timeMs }: ConfigOf<"python">, parts: JudgeParts): Judge {
  const { sandbox: answers, testRunners: tests } = parts;
  if (answers === undefined || tests === undefined) {
    throw new JudgeError(kind, "The judge python cannot run here: this process has no sandbox for code.");
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
