/**
 * The environment of one attempt: seeded by its task, each step a span, its reward and info in the record of the turn
 * that acted, with the state in which it did and the action, so that the episode can be played again.
 */

import { hash } from "node:crypto";

import { RetryableError, Turnstile } from "@hone/core";
import { TurnInfo } from "@hone/rl";
import { Attr, type Context, contextOf, recordError, runBelow, SpanName, startSpan } from "@hone/telemetry";
import type { AgentEnvironment } from "../definitions/agent.ts";
import type {
  ActionFormat,
  Environment,
  EnvironmentDescription,
  EnvironmentReset,
  EnvironmentStep,
} from "../definitions/environment.ts";
import { EnvironmentRefusedError } from "../errors.ts";
import type { ModelSession } from "../model/model-session.ts";
import type { RecordedTurn } from "./conversation.ts";
import type { RolloutObserver } from "./rollout-observer.ts";

type EnvironmentSpan = ReturnType<typeof startSpan>;

/** Lets rollouts whose environments answered at the same moment continue one after another. */
const turnstile = new Turnstile();

export interface RolloutEnvironmentOptions {
  readonly inner: Environment;
  /** The environment's name in the task. */
  readonly name: string;
  readonly seed: number;
  readonly trace: Context;
  readonly observer?: RolloutObserver | undefined;
}

export class RolloutEnvironment implements AgentEnvironment {
  /** Sum of the rewards so far. */
  totalReward = 0;
  /** A failure outside the agent; it ends the attempt even if the agent catches it. */
  failure: RetryableError | EnvironmentRefusedError | undefined;
  readonly #inner: Environment;
  readonly #name: string;
  readonly #seed: number;
  readonly #trace: Context;
  readonly #observer: RolloutObserver | undefined;
  #session: ModelSession | undefined;
  /** Digest or name of the state to which the environment's last answer led. */
  #state: string | undefined;
  /** Whether an episode has begun and is not over. */
  #isOpen = false;

  constructor(options: RolloutEnvironmentOptions) {
    this.#inner = options.inner;
    this.#name = options.name;
    this.#seed = options.seed;
    this.#trace = options.trace;
    this.#observer = options.observer;
  }

  /** Name of the state to which the last action, or the reset, led; undefined before the reset. */
  get state(): string | undefined {
    return this.#state;
  }

  /** The session whose turns the rewards belong to. */
  attach(session: ModelSession): void {
    this.#session = session;
  }

  async reset(): Promise<EnvironmentReset> {
    const reset = await this.#traced(SpanName.environmentReset, () => this.#inner.reset(this.#seed));
    this.#isOpen = true;
    this.#state = nameOfState(reset);
    this.#observer?.onReset(reset);
    return reset;
  }

  async step(action: string): Promise<EnvironmentStep> {
    const step = await this.#traced(SpanName.environmentStep, () => this.#inner.step(action), describe);
    this.#isOpen = !step.terminated && !step.truncated;
    const turn = this.#give(step.reward);
    if (turn !== undefined) {
      // Info that the call itself recorded, such as its role, is kept. The state is the one before the step.
      turn.info = { ...turn.info, ...step.info, [TurnInfo.state]: this.#state ?? null };
      turn.actions ??= [];
      turn.actions.push(action);
    }
    this.#state = nameOfState(step);
    this.#observer?.onStep(action, step, turn);
    return step;
  }

  /** Ends an episode that is still open; its reward goes to the turn that acted last. Nothing happens after a failure. */
  async finish(): Promise<void> {
    if (!this.#isOpen || this.failure !== undefined || this.#inner.finish === undefined) return;
    this.#isOpen = false;
    const finish = async () => this.#inner.finish?.() ?? 0;
    const reward = await this.#traced(SpanName.environmentFinish, finish, (span, result) =>
      span.setAttribute(Attr.turnReward, result),
    );
    this.#give(reward);
    this.#observer?.onFinish(reward);
  }

  metrics(): Readonly<Record<string, number>> {
    return this.#inner.metrics();
  }

  describe(format?: ActionFormat): EnvironmentDescription {
    return this.#inner.describe?.(format) ?? {};
  }

  async close(): Promise<void> {
    await this.#inner.close?.();
  }

  /** @returns the turn that the reward was given to. */
  #give(reward: number): RecordedTurn | undefined {
    this.totalReward += reward;
    const turn = this.#session?.lastTurn;
    if (turn !== undefined) turn.reward = (turn.reward ?? 0) + reward;
    return turn;
  }

  async #traced<T>(
    name: string,
    work: () => Promise<T> | T,
    describeResult: (span: EnvironmentSpan, result: T) => void = () => undefined,
  ): Promise<T> {
    const span = startSpan(name, {
      parent: this.#trace,
      attributes: { [Attr.environmentName]: this.#name, [Attr.environmentSeed]: this.#seed },
    });
    try {
      const working = runBelow(contextOf(span, this.#trace), work);
      const result = await working;
      if (working instanceof Promise) await turnstile.pass();
      if (span.isRecording()) describeResult(span, result);
      return result;
    } catch (error) {
      if (error instanceof RetryableError || error instanceof EnvironmentRefusedError) this.failure = error;
      recordError(span, error);
      throw error;
    } finally {
      span.end();
    }
  }
}

/** Hexadecimal digits: states of one group are compared with each other, some thousands at most. */
const DIGEST_DIGITS = 16;

/** What the environment calls its state, or a digest of what it showed. */
export function nameOfState({ observation, info }: EnvironmentReset): string {
  const named = info[TurnInfo.state];
  if (typeof named === "string") return named;
  return hash("sha256", observation, "hex").slice(0, DIGEST_DIGITS);
}

function describe(span: EnvironmentSpan, result: EnvironmentStep): void {
  const { action, action_is_valid: isValid } = result.info;
  span.setAttributes({
    [Attr.turnReward]: result.reward,
    [Attr.environmentTerminated]: result.terminated,
    [Attr.environmentTruncated]: result.truncated,
    ...(typeof action === "string" && { [Attr.environmentAction]: action }),
    ...(typeof isValid === "boolean" && { [Attr.environmentActionValid]: isValid }),
  });
}
