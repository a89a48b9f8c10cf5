/**
 * Grades a program by its output for each input.
 *
 * P1: one process runs all inputs, each in a new `__main__`. When a program ends the process, its test has failed and the
 *     next test gets another process.
 * P2: the expected output is compared here and is never sent to that process.
 */

import { parseJson } from "@hone/core";
import type { PythonSandbox } from "@hone/sandbox";
import { z } from "zod";
import { JudgeError } from "../../../errors.ts";
import { Conversation } from "./conversation.ts";
import { type GradeOptions, Grades } from "./grade.ts";
import { PROGRAMS_PROGRAM } from "./harness.ts";
import type { ProgramTest } from "./row-tests.ts";

/** At least this much of a program's output is read, or twice the longest expected output; a longer output is wrong. */
const MIN_OUTPUT_BYTES = 131_072;

/** The reply of the answer's interpreter after a run. */
const ranShape = z.object({ output: z.string(), error: z.string().nullable() });

/** @throws {JudgeError}, {ConversationLostError} and the errors of the sandbox; whatever the code does only affects its grades. */
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

/** Grades until a program ends the process or everything is graded. */
async function gradeInOneProcess(
  code: string,
  tests: readonly ProgramTest[],
  grades: Grades,
  answers: PythonSandbox,
  { signal }: GradeOptions,
): Promise<void> {
  // All tests have the same limit, as a limit of its own would reveal the length of a test's expected output.
  const longest = Math.max(...tests.map(({ output }) => Buffer.byteLength(output)));
  const maxBytes = Math.max(MIN_OUTPUT_BYTES, 2 * longest);
  const answer = Conversation.open(answers, PROGRAMS_PROGRAM);
  try {
    const ready = await answer.begin(signal);
    if (ready.kind === "ended") {
      throw new JudgeError("python", `the interpreter for answers did not start: ${ready.reason}`);
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
  if (!ran.success) return "its process did not report its output";
  if (ran.data.error !== null) return ran.data.error.slice(0, 500);
  return isSameOutput(ran.data.output, expected) ? undefined : "it printed something else";
}

/** Ignores spaces at the ends of lines and line breaks at the end, as code contests do, and nothing else. */
export function isSameOutput(printed: string, expected: string): boolean {
  return normalOf(printed) === normalOf(expected);
}

function normalOf(text: string): string {
  const lines = text.split("\n").map((line) => line.trimEnd());
  return lines.join("\n").trimEnd();
}
