/**
 * Grades a solution by tests. The tests run in one interpreter and the answer in another, and this relays their messages.
 *
 * G1: only the interpreter of the tests reports whether a test passed, with a nonce that the other interpreter never gets.
 * G2: a test has failed if one of the processes ended or the time was over, even if the tests caught that. The next tests
 *     run in new processes.
 * G3: the answer never gets the text of the tests or their expected values, but only the arguments for its functions.
 */

import { randomUUID } from "node:crypto";
import { parseJson, unreachable } from "@hone/core";
import type { PythonSandbox } from "@hone/sandbox";
import { z } from "zod";
import { JudgeError } from "../../../errors.ts";
import { Conversation } from "./conversation.ts";
import { type Clock, type GradeOptions, Grades } from "./grade.ts";
import { ANSWER_PROGRAM } from "./harness.ts";
import type { CodeTest } from "./row-tests.ts";
import type { TestRunners } from "./test-runners.ts";

/** The sandbox allows 10,000 calls for each process; the remaining ones are for the test that begins. */
const MAX_CALLS_BEFORE_A_TEST = 2_000;

const verdictShape = z.object({
  nonce: z.string(),
  kind: z.enum(["passed", "failed", "broken"]),
  reason: z.string().optional(),
});

/** Where the answer and the tests run. */
export interface Interpreters {
  readonly answers: PythonSandbox;
  readonly tests: TestRunners;
}

/** @throws {JudgeError} if the tests are broken, {ConversationLostError} and the errors of the sandbox. */
export async function gradeTests(
  code: string,
  tests: readonly CodeTest[],
  { answers, tests: runners }: Interpreters,
  options: GradeOptions,
): Promise<Grades> {
  const grades = new Grades(tests.length, options);
  const key = JSON.stringify(tests);
  while (!grades.isDone) {
    const runner = await runners.take(key, options.signal);
    const pair = new Pair(runner, answers, grades, options.signal);
    let isReusable = false;
    try {
      isReusable = await pair.grade(code, tests.slice(grades.next));
    } finally {
      await pair.end();
      if (isReusable) runners.release(key, runner);
      else await runner.end();
    }
  }
  return grades;
}

/** An interpreter for the tests and one for the answer, used until a test ends one of them or everything is graded. */
class Pair {
  readonly #tests: Conversation;
  readonly #answers: PythonSandbox;
  readonly #grades: Grades;
  readonly #signal: AbortSignal;
  readonly #nonce = randomUUID();
  #answer: Conversation | undefined;
  #clock: Clock | undefined;

  constructor(tests: Conversation, answers: PythonSandbox, grades: Grades, signal: AbortSignal) {
    this.#tests = tests;
    this.#answers = answers;
    this.#grades = grades;
    this.#signal = signal;
  }

  /** @returns whether the interpreter of the tests can be used again. */
  async grade(code: string, tests: readonly CodeTest[]): Promise<boolean> {
    let reply: string | undefined = JSON.stringify({ nonce: this.#nonce, code, tests });
    try {
      while (reply !== undefined) {
        const said = await this.#tests.say(reply, this.#clock?.signal ?? this.#signal);
        if (said.kind === "ended") {
          this.#endOfTests(said);
          return false;
        }
        if (said.text.startsWith("done\n")) return this.#tests.numCalls <= MAX_CALLS_BEFORE_A_TEST;
        reply = await this.#replyTo(said.text);
      }
    } catch (error) {
      if (!this.#clock?.isOver()) throw error;
      this.#grades.fail("its time was over"); // G2
    }
    return false;
  }

  async end(): Promise<void> {
    this.#clock?.stop();
    await this.#answer?.end();
  }

  /** @returns the reply, or undefined if the grading cannot continue with these interpreters. */
  async #replyTo(said: string): Promise<string | undefined> {
    const at = said.indexOf("\n");
    const kind = said.slice(0, at);
    const text = said.slice(at + 1);
    switch (kind) {
      case "begin":
        return this.#begin();
      case "ask": {
        const answer = await this.#answer?.say(text, this.#clock?.signal ?? this.#signal);
        if (answer?.kind === "said") return answer.text;
        this.#grades.fail(answer?.reason ?? "it did not run"); // G2
        return undefined;
      }
      case "verdict":
        return this.#take(text);
      default:
        throw new JudgeError(
          "python",
          `the interpreter for tests sent an unknown message: ${said.slice(0, 80)}`,
        );
    }
  }

  async #begin(): Promise<string | undefined> {
    if (this.#tests.numCalls > MAX_CALLS_BEFORE_A_TEST) return undefined;
    if (this.#answer === undefined) {
      this.#answer = Conversation.open(this.#answers, ANSWER_PROGRAM);
      const ready = await this.#answer.begin(this.#signal);
      if (ready.kind === "ended") {
        throw new JudgeError("python", `the interpreter for answers did not start: ${ready.reason}`);
      }
    }
    this.#clock = this.#grades.startClock();
    return "";
  }

  /** G1 */
  #take(text: string): string | undefined {
    this.#clock?.stop();
    this.#clock = undefined;
    const verdict = verdictShape.parse(parseJson(text));
    if (verdict.nonce !== this.#nonce) {
      throw new JudgeError("python", "the interpreter for tests sent a verdict without its nonce");
    }
    const { kind, reason = "no reason" } = verdict;
    switch (kind) {
      case "passed":
        this.#grades.pass();
        break;
      case "failed":
        this.#grades.fail(reason);
        break;
      case "broken":
        throw new JudgeError("python", `the row's tests cannot be used: ${reason}`);
      default:
        return unreachable(kind);
    }
    return this.#grades.isDone ? "enough" : "";
  }

  /** Handles the end of the tests' process. In the middle of a test, the answer's values probably caused it. */
  #endOfTests({ how, reason }: { readonly how: string; readonly reason: string }): void {
    if (this.#clock === undefined || how === "finished") {
      throw new JudgeError("python", `the interpreter for tests ended early: ${reason}`);
    }
    this.#grades.fail(reason);
  }
}
