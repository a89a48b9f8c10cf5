/**
 * A conversation with code in the sandbox: each call of the code to its host is a message, and the host's next message is
 * what the call returns.
 *
 * C1: the two sides take turns, and neither waits longer than its signal allows.
 * C2: a conversation whose process was killed from outside is lost, as another process cannot continue it in the middle.
 */

import { raceAbortable } from "@hone/core";
import type { PythonSandbox, RunResult } from "@hone/sandbox";

/** The other side's message, or its end. */
export type Said =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "ended"; readonly how: RunResult["kind"]; readonly reason: string };

/** The process was killed from outside (C2). */
export class ConversationLostError extends Error {
  override readonly name = "ConversationLostError";

  constructor() {
    super("a process of the sandbox was killed from outside while it judged");
  }
}

/** Longer than any grading takes with its waits for processes; gradings have deadlines of their own. */
const RUN_MS = 24 * 60 * 60 * 1_000;
/** Small, as output outside of the conversation is not used. */
const MAX_OUTPUT_BYTES = 4_096;

export class Conversation {
  readonly #over = new AbortController();
  /** Settles when the run ends. */
  readonly #end: Promise<Said>;
  #said = Promise.withResolvers<Said>();
  #answer: PromiseWithResolvers<string> | undefined;

  #isOver = false;
  #numCalls = 0;

  private constructor(sandbox: PythonSandbox, code: string) {
    const limits = {
      timeMs: RUN_MS,
      maxOutputBytes: MAX_OUTPUT_BYTES,
      answerCall: (text: string) => {
        this.#numCalls++;
        this.#answer = Promise.withResolvers();
        this.#said.resolve({ kind: "said", text });
        return this.#answer.promise;
      },
    };
    let numProcesses = 0;
    const onProcess = <T>(wait: () => Promise<T>): Promise<T> => {
      // The sandbox starts another process when one is killed by a signal (C2).
      if (++numProcesses > 1) throw new ConversationLostError();
      return wait();
    };
    const running = sandbox.run(code, limits, this.#over.signal, async (wait) => onProcess(wait));
    this.#end = running.then(endOf).finally(() => {
      this.#isOver = true;
    });
    // The promise may be rejected while nobody awaits it.
    this.#end.catch(() => undefined);
  }

  /** Starts the code; the caller must call `end`. */
  static open(sandbox: PythonSandbox, code: string): Conversation {
    return new Conversation(sandbox, code);
  }

  /** Number of calls so far; the sandbox allows 10,000 for each process. */
  get numCalls(): number {
    return this.#numCalls;
  }

  /** Whether its process has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Waits for the code's first message.
   * @throws {SandboxUnavailableError}, {ConversationLostError}, and the signal's reason when it aborts.
   */
  async begin(signal: AbortSignal): Promise<Said> {
    return raceAbortable(Promise.race([this.#said.promise, this.#end]), signal);
  }

  /** Sends a message and waits for the next one. @throws as {@link begin} does. */
  async say(text: string, signal: AbortSignal): Promise<Said> {
    this.#said = Promise.withResolvers();
    this.#answer?.resolve(text);
    return this.begin(signal);
  }

  /** Ends the process; resolves when its place in the sandbox is free again. */
  async end(): Promise<void> {
    this.#over.abort();
    await this.#end.catch(() => undefined);
  }
}

function endOf(result: RunResult): Said {
  switch (result.kind) {
    case "finished":
      return { kind: "ended", how: "finished", reason: result.error ?? "it came to its end" };
    case "crashed":
      if (result.isBySignal) throw new ConversationLostError();
      return { kind: "ended", how: "crashed", reason: `its process ended (${result.reason})` };
    case "timed_out":
      return { kind: "ended", how: "timed_out", reason: "its time was over" };
    case "out_of_memory":
      return { kind: "ended", how: "out_of_memory", reason: "it used too much memory" };
  }
}
