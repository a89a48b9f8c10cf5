/**
 * Grades a program by what it prints for each input.
 *
 * P1: one process runs all inputs, each in a fresh `__main__`; a program that ends it fails its test and the next one gets
 *     another process.
 * P2: what must be printed never reaches that process: it is compared here.
 */

import { parseJson } from "@hone/core";
import type { PythonSandbox } from "@hone/sandbox";
import { z } from "zod";
import { JudgeError } from "../../../errors.ts";
import { Conversation } from "./conversation.ts";
import { type GradeOptions, Grades } from "./grade.ts";
import { PROGRAMS_PROGRAM } from "./harness.ts";
import type { ProgramTest } from "./row-tests.ts";
import { isSameOutput } from "./same-output.ts";

/** Of a program's output this is read, or twice the longest that is expected; what is longer is wrong. */
const MIN_OUTPUT_BYTES = 131_072;

/** The answer's word on a run. */
const ranShape = z.object({ output: z.string(), error: z.string().nullable() });

/** @throws {JudgeError}, {ConversationLostError} and what the sandbox throws; what the code does is a grade. */
export async function gradePrograms(
  code: string,
  tests: readonly ProgramTest[],
  answers: PythonSandbox,
  options: GradeOptions,
): Promise<Grades> {
  const grades = new Grades(tests.length, options);
  while (!grades.isDone) await gradeInOneProcess(code, tests, grades, answers, options);
  return grades;
}

/** Until a program ends the process, or all is graded. */
async function gradeInOneProcess(
  code: string,
  tests: readonly ProgramTest[],
  grades: Grades,
  answers: PythonSandbox,
  { signal }: GradeOptions,
): Promise<void> {
  // One bound for all: the length of what one test expects would tell a program "yes" from "no".
  const longest = Math.max(...tests.map(({ output }) => Buffer.byteLength(output)));
  const maxBytes = Math.max(MIN_OUTPUT_BYTES, 2 * longest);
  const answer = Conversation.open(answers, PROGRAMS_PROGRAM);
  try {
    const ready = await answer.begin(signal);
    if (ready.kind === "ended") {
      throw new JudgeError("python", `The program that runs answers did not start: ${ready.reason}`);
    }
    while (!grades.isDone) {
      const { input, output } = tests[grades.next]!;
      const clock = grades.startClock();
      try {
        const said = await answer.say(JSON.stringify({ code, input, maxBytes }), clock.signal);
        if (said.kind === "ended") return grades.fail(said.reason);
        const wrong = problemOf(said.text, output);
        if (wrong === undefined) grades.pass();
        else grades.fail(wrong);
      } catch (error) {
        if (!clock.isOver()) throw error;
        return grades.fail("its time was over");
      } finally {
        clock.stop();
      }
    }
  } finally {
    await answer.end();
  }
}

function problemOf(reply: string, expected: string): string | undefined {
  let value: unknown;
  try {
    value = parseJson(reply);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const ran = ranShape.safeParse(value);
  if (!ran.success) return "its process did not say what it printed";
  if (ran.data.error !== null) return ran.data.error.slice(0, 500);
  return isSameOutput(ran.data.output, expected) ? undefined : "it printed something else";
}
