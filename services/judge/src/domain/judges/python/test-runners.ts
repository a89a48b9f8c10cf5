/**
 * The interpreters that run tests. One that has run the tests of a row waits a little for the next answer to them, as
 * the answers of a group come together: then a grading starts one process instead of two.
 *
 * R1: no interpreter runs the tests of two rows: what a row's tests do to theirs is their own affair.
 * R2: one that waits for an answer makes way for tests that wait for an interpreter.
 * R3: they have a sandbox of their own. Who holds a place here waits for one of the answers' sandbox, never the other way
 *     round, so gradings do not wait for each other in a circle.
 */

import type { PythonSandbox } from "@hone/sandbox";
import { JudgeError } from "../../../errors.ts";
import { Conversation } from "./conversation.ts";
import { TESTS_PROGRAM } from "./harness.ts";

interface IdleRunner {
  readonly key: string;
  readonly runner: Conversation;
  readonly timer: NodeJS.Timeout;
}

/** The answers of a group finish within seconds of each other, or somebody else needs the process more. */
const MAX_IDLE_MS = 10_000;

export class TestRunners {
  readonly #sandbox: PythonSandbox;
  /** Oldest first. */
  #idle: readonly IdleRunner[] = [];
  /** Who waits for an interpreter to start (R2). */
  #numWaiting = 0;
  #isClosed = false;

  constructor(sandbox: PythonSandbox) {
    this.#sandbox = sandbox;
  }

  /**
   * An interpreter that waits for a job of these tests.
   * @param key what tells these tests from others.
   * @throws {SandboxUnavailableError}, and the signal's reason when it aborts.
   */
  async take(key: string, signal: AbortSignal): Promise<Conversation> {
    const known = this.#idle.find((each) => each.key === key && !each.runner.isOver);
    if (known !== undefined) {
      this.#drop(known);
      return known.runner;
    }
    const [oldest] = this.#idle;
    if (oldest !== undefined) void this.#end(oldest);
    const runner = Conversation.open(this.#sandbox, TESTS_PROGRAM);
    this.#numWaiting++;
    try {
      const said = await runner.begin(signal);
      if (said.kind === "said") return runner;
      throw new JudgeError("python", `The program that runs tests did not start: ${said.reason}`);
    } catch (error) {
      await runner.end();
      throw error;
    } finally {
      this.#numWaiting--;
    }
  }

  /** Takes back one that waits for its next job. */
  giveBack(key: string, runner: Conversation): void {
    if (this.#isClosed || this.#numWaiting > 0) {
      void runner.end();
      return;
    }
    const timer = setTimeout(() => void this.#end(idle), MAX_IDLE_MS);
    const idle = { key, runner, timer };
    this.#idle = [...this.#idle, idle];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.map((each) => this.#end(each)));
    await this.#sandbox.close();
  }

  async #end(idle: IdleRunner): Promise<void> {
    this.#drop(idle);
    await idle.runner.end();
  }

  #drop(idle: IdleRunner): void {
    clearTimeout(idle.timer);
    this.#idle = this.#idle.filter((each) => each !== idle);
  }
}
