/**
 * Grades a solution by tests: they run in one interpreter, the answer in another, and this relays what they say.
 *
 * G1: the interpreter of the tests alone says whether a test passed, with a nonce that the other one never gets.
 * G2: a test in which either process ended, or whose time was over, has failed, whatever the tests made of it; what comes
 *     after it runs in new processes.
 * G3: the tests' texts and the values that they expect never reach the answer; what they pass to its functions does.
 */

import { randomUUID } from "node:crypto";
import { parseJson, unreachable } from "@hone/core";
import { z } from "zod";
import { JudgeError } from "../../../errors.ts";
import { Conversation } from "./conversation.ts";
import { type Clock, type GradeOptions, Grades, type Interpreters } from "./grade.ts";
import { ANSWER_PROGRAM, testsProgram } from "./harness.ts";
import type { CodeTest } from "./row-tests.ts";

/** The sandbox allows 10,000 calls to a process; a test begins with at least this many left. */
const MAX_CALLS_BEFORE_A_TEST = 2_000;

const verdictShape = z.object({
  nonce: z.string(),
  kind: z.enum(["passed", "failed", "broken"]),
  reason: z.string().optional(),
});

/** @throws {JudgeError} where the tests are broken, {ConversationLostError} and what the sandbox throws. */
export async function gradeTests(
  code: string,
  tests: readonly CodeTest[],
  interpreters: Interpreters,
  options: GradeOptions,
): Promise<Grades> {
  const grades = new Grades(tests.length, options);
  while (!grades.isDone) {
    await using pair = new Pair(code, tests, grades, interpreters, options);
    await pair.grade();
  }
  return grades;
}

/** The two interpreters, until a test ends one of them or all is graded. */
class Pair {
  readonly #grades: Grades;
  readonly #interpreters: Interpreters;
  readonly #signal: AbortSignal;
  readonly #nonce = randomUUID();
  readonly #tests: Conversation;
  #answer: Conversation | undefined;
  #clock: Clock | undefined;
  #numCalls = 0;

  constructor(
    code: string,
    tests: readonly CodeTest[],
    grades: Grades,
    interpreters: Interpreters,
    { signal }: GradeOptions,
  ) {
    this.#grades = grades;
    this.#interpreters = interpreters;
    this.#signal = signal;
    const job = { nonce: this.#nonce, code, tests: tests.slice(grades.next) };
    this.#tests = Conversation.open(interpreters.tests, testsProgram(job), signal);
  }

  async grade(): Promise<void> {
    try {
      let said = await this.#tests.begin(this.#signal);
      while (true) {
        if (said.kind === "ended") return this.#endOfTests(said);
        const reply = await this.#replyTo(said.text);
        if (reply === undefined) return;
        said = await this.#tests.say(reply, this.#clock?.signal ?? this.#signal);
      }
    } catch (error) {
      if (!this.#clock?.isOver()) throw error;
      this.#grades.fail("its time was over"); // G2
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#clock?.stop();
    await Promise.all([this.#tests.end(), this.#answer?.end()]);
  }

  /** @returns undefined where the two have nothing more to say to each other. */
  async #replyTo(said: string): Promise<string | undefined> {
    const at = said.indexOf("\n");
    const kind = said.slice(0, at);
    const text = said.slice(at + 1);
    this.#numCalls++;
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
          `The program that runs tests said something unknown: ${said.slice(0, 80)}`,
        );
    }
  }

  async #begin(): Promise<string | undefined> {
    if (this.#numCalls > MAX_CALLS_BEFORE_A_TEST) return undefined;
    if (this.#answer === undefined) {
      this.#answer = Conversation.open(this.#interpreters.answers, ANSWER_PROGRAM, this.#signal);
      const ready = await this.#answer.begin(this.#signal);
      if (ready.kind === "ended") {
        throw new JudgeError("python", `The program that runs answers did not start: ${ready.reason}`);
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
      throw new JudgeError("python", "The program that runs tests gave a verdict without its nonce.");
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
        throw new JudgeError("python", `The row's tests cannot be used: ${reason}.`);
      default:
        return unreachable(kind);
    }
    return this.#grades.isDone ? undefined : "";
  }

  /** The tests' process ended: in the middle of a test by what the answer gave it, as far as anybody can tell. */
  #endOfTests({ how, reason }: { readonly how: string; readonly reason: string }): void {
    if (this.#clock === undefined || how === "finished") {
      throw new JudgeError("python", `The program that runs tests ended early: ${reason}`);
    }
    this.#grades.fail(reason);
  }
}
