/**
 * The container of one attempt, which its tools share. It is made for the first command, and removed with the attempt.
 *
 * W1: commands run one after the other, in the order of the calls.
 * W2: a failure of the runtime while a command runs ends the attempt: whether the command had an effect is not known, so it is
 *     never run again. Before the first command a failure may be tried again.
 * W3: a container that a command has made unusable is replaced by a new one, and the model is told that its files are gone.
 */

import { Semaphore } from "@hone/core";
import type { CommandEnd, CommandOptions, ContainerHost, ContainerSpec, HeldContainer } from "@hone/sandbox";

type AroundWait = <T>(wait: () => Promise<T>) => Promise<T>;

export class AttemptContainer {
  readonly #host: ContainerHost;
  readonly #spec: ContainerSpec;
  readonly #turn = new Semaphore(1);
  #held: HeldContainer | undefined;
  /** W2 */
  #failure: { readonly error: unknown } | undefined;
  #isClosed = false;
  /** What was used. */
  image: string | undefined;

  constructor(host: ContainerHost, spec: ContainerSpec) {
    this.#host = host;
    this.#spec = spec;
  }

  /**
   * Runs a command.
   * @param aroundWait wraps the waits for other commands of this attempt and for a place on the machine.
   * @throws {ContainerRuntimeError} when the runtime fails. @throws the signal's reason when it aborts.
   */
  async run(options: CommandOptions, aroundWait: AroundWait): Promise<CommandEnd> {
    const { signal } = options;
    await this.#turn.acquire(signal); // W1
    try {
      if (this.#failure !== undefined) throw this.#failure.error; // W2
      this.#held ??= await this.#open(signal, aroundWait);
      const { container } = this.#held;
      let end: CommandEnd;
      try {
        end = await container.run(options);
      } catch (error) {
        this.#failure = { error };
        throw error;
      }
      if (end.kind === "lost" || (end.kind === "timed_out" && end.isLost)) await this.#giveUp(); // W3
      return end;
    } finally {
      this.#turn.release();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#giveUp();
  }

  async #open(signal: AbortSignal, aroundWait: AroundWait): Promise<HeldContainer> {
    const held = await this.#host.open(this.#spec, signal, aroundWait);
    this.image = held.image;
    // The attempt may have ended meanwhile.
    if (!this.#isClosed) return held;
    await held.release();
    throw new DOMException("the attempt is over", "AbortError");
  }

  async #giveUp(): Promise<void> {
    const held = this.#held;
    this.#held = undefined;
    await held?.release();
  }
}
