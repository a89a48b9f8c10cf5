/**
 * Code in the sandbox that calls its host and is told the next thing by what its call returns.
 *
 * C1: the two speak in turns; who waits for the other waits no longer than its signal allows.
 * C2: a conversation whose process somebody else ended is lost: it cannot go on in another process from the middle.
 */

import { raceAbortable } from "@hone/core";
import type { PythonSandbox, RunResult } from "@hone/sandbox";

/** What came of the other side's turn. */
export type Said =
  | { readonly kind: "said"; readonly text: string }
  | { readonly kind: "ended"; readonly how: RunResult["kind"]; readonly reason: string };

/** A signal from outside ended the process in the middle (C2). */
export class ConversationLostError extends Error {
  override readonly name = "ConversationLostError";

  constructor() {
    super("a process of the sandbox was ended from outside while it judged");
  }
}

/** Longer than any grading may take with its waits for processes; gradings have deadlines of their own. */
const RUN_MS = 24 * 60 * 60 * 1_000;
/** Nobody reads what is printed past the conversation. */
const MAX_OUTPUT_BYTES = 4_096;

export class Conversation {
  readonly #over = new AbortController();
  /** Settles with the run. */
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
      // The sandbox runs code again whose process a signal ended (C2).
      if (++numProcesses > 1) throw new ConversationLostError();
      return wait();
    };
    const running = sandbox.run(code, limits, this.#over.signal, async (wait) => onProcess(wait));
    this.#end = running.then(endOf).finally(() => {
      this.#isOver = true;
    });
    // It may fail while nobody waits for it.
    this.#end.catch(() => undefined);
  }

  /** Starts the code; it is to be ended. */
  static open(sandbox: PythonSandbox, code: string): Conversation {
    return new Conversation(sandbox, code);
  }

  /** Calls so far; the sandbox allows 10,000 to a process. */
  get numCalls(): number {
    return this.#numCalls;
  }

  /** Whether its process is gone. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Waits for the code's first word.
   * @throws {SandboxUnavailableError}, {ConversationLostError}, and the signal's reason when it aborts.
   */
  async begin(signal: AbortSignal): Promise<Said> {
    return raceAbortable(Promise.race([this.#said.promise, this.#end]), signal);
  }

  /** Answers and waits for the next word. @throws as {@link begin}. */
  async say(text: string, signal: AbortSignal): Promise<Said> {
    this.#said = Promise.withResolvers();
    this.#answer?.resolve(text);
    return this.begin(signal);
  }

  /** Ends the process; done when it has given its place back. */
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
      return { kind: "ended", how: "out_of_memory", reason: "it used more memory than it may" };
  }
}
