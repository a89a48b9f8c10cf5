/**
 * The interpreters that run tests. After it has run the tests of a row, an interpreter is kept for a short time for the next
 * answer to the same row, as the answers of a group come together. The next grading then starts one process and not two.
 *
 * R1: an interpreter runs the tests of one row only, as tests may change their interpreter.
 * R2: an idle interpreter is ended when other tests wait for one.
 * R3: they have a sandbox of their own. A grading that has a place in it may wait for a place in the answers' sandbox, but
 *     never the other way round, so gradings cannot deadlock.
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

/** The answers of a group usually finish within seconds of each other. */
const MAX_IDLE_MS = 10_000;

export class TestRunners {
  readonly #sandbox: PythonSandbox;
  /** Oldest first. */
  #idle: readonly IdleRunner[] = [];
  /** Number of gradings that wait for an interpreter to start (R2). */
  #numWaiting = 0;
  #isClosed = false;

  constructor(sandbox: PythonSandbox) {
    this.#sandbox = sandbox;
  }

  /**
   * Gives an interpreter that is ready for these tests.
   * @param key identifies the tests.
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
      throw new JudgeError("python", `the interpreter for tests did not start: ${said.reason}`);
    } catch (error) {
      await runner.end();
      throw error;
    } finally {
      this.#numWaiting--;
    }
  }

  /** Takes back an interpreter that is ready for its next job. */
  release(key: string, runner: Conversation): void {
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
