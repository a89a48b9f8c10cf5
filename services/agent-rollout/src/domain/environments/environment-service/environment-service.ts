/**
 * The environment `environment_service`: anyone's environment, in any language, behind a server.
 *
 * V1: whatever goes wrong at the server or on the way there is an InfrastructureError, and never a reward: the attempt is repeated
 *     with an instance of its own. A task that the server refuses is an EnvironmentRefusedError.
 * V2: where the server is asked for the episode's reward, it is asked once: in the step that ends the episode, before that
 *     step returns, or when the episode ends because the agent or a limit ended it.
 * V3: metrics: `success` (what the server says in `info.success`, or else whether the reward reached `successReward`), `score` (what
 *     evaluate gave), and the means of `action_is_valid` and `action_is_effective` where the server's `info` has them.
 */

import {
  ActionFormat,
  type Environment,
  type EnvironmentContext,
  type EnvironmentDescription,
  type EnvironmentInfo,
  type EnvironmentReset,
  type EnvironmentStep,
  InfrastructureError,
} from "@hone/agents";
import { BoundKeys } from "@hone/config";
import { unreachable } from "@hone/core";
import { runningEpisode } from "../running-episode.ts";
import { AgentjetSession } from "./agentjet-session.ts";
import { type EnvironmentServiceConfig, ServiceProtocol } from "./config.ts";
import { OpenenvSession } from "./openenv-session.ts";
import type { ServiceSession, ServiceState } from "./service-session.ts";

/** Entries of the server's `info` whose means over the steps are metrics. */
const TALLIED = ["action_is_valid", "action_is_effective"] as const;

/** @throws {InvalidInputError} when the key is not set, or may not be sent to the server. */
export function makeEnvironmentService(
  config: EnvironmentServiceConfig,
  context: EnvironmentContext | undefined,
): EnvironmentService {
  const { keyVariable, url, protocol } = config;
  const keys = context?.keys ?? BoundKeys.none;
  const key = keyVariable === undefined ? undefined : keys.keyFor(keyVariable, url, "keyVariable");
  return new EnvironmentService(config, () => {
    switch (protocol) {
      case ServiceProtocol.agentjet:
        return new AgentjetSession(config, key);
      case ServiceProtocol.openenv:
        return new OpenenvSession(config, key);
      default:
        return unreachable(protocol);
    }
  });
}

/** The figures of one episode. */
class Episode {
  readonly session: ServiceSession;
  steps = 0;
  /** Sum of the server's rewards of steps, whether they count or not. */
  stepReturn = 0;
  isOver = false;
  /** What evaluate gave; undefined = it was not asked. */
  score: number | undefined;
  /** What the server last said about success. */
  saidSuccess: boolean | undefined;
  readonly #tallies = new Map<string, { sum: number; count: number }>();

  constructor(session: ServiceSession) {
    this.session = session;
  }

  add({ reward, info }: ServiceState): void {
    this.steps++;
    this.stepReturn += reward;
    const { success } = info;
    if (typeof success === "boolean" || success === 0 || success === 1)
      this.saidSuccess = success === true || success === 1;
    for (const name of TALLIED) {
      const value = info[name];
      if (typeof value !== "boolean") continue;
      const tally = this.#tallies.get(name) ?? { sum: 0, count: 0 };
      this.#tallies.set(name, { sum: tally.sum + Number(value), count: tally.count + 1 });
    }
  }

  /** V3 */
  metrics(successReward: number): Record<string, number> {
    const isSuccess = this.saidSuccess ?? (this.score ?? this.stepReturn) >= successReward;
    return {
      success: isSuccess ? 1 : 0,
      ...(this.score !== undefined && { score: this.score }),
      ...Object.fromEntries([...this.#tallies].map(([name, { sum, count }]) => [name, sum / count])),
    };
  }
}

export class EnvironmentService implements Environment {
  readonly #config: EnvironmentServiceConfig;
  readonly #makeSession: () => ServiceSession;
  #episode: Episode | undefined;

  constructor(config: EnvironmentServiceConfig, makeSession: () => ServiceSession) {
    this.#config = config;
    this.#makeSession = makeSession;
  }

  async reset(seed: number): Promise<EnvironmentReset> {
    await this.close();
    const episode = new Episode(this.#makeSession());
    this.#episode = episode;
    const state = await episode.session.open(seed);
    if (state.isTerminated || state.isTruncated) {
      throw new InfrastructureError(
        "begin an episode",
        `${this.#config.url} says that it is over before the first step`,
        state.observation.slice(0, 100),
      );
    }
    return shownOf(state, state.info);
  }

  async step(action: string): Promise<EnvironmentStep> {
    const episode = this.#running();
    const state = await episode.session.step(action);
    episode.add(state);
    const { maxSteps = Number.POSITIVE_INFINITY } = this.#config;
    const terminated = state.isTerminated;
    const truncated = !terminated && (state.isTruncated || episode.steps >= maxSteps);
    episode.isOver = terminated || truncated;
    const stepReward = this.#takesStepRewards ? state.reward : 0;
    const reward = stepReward + (episode.isOver ? await this.#evaluate(episode) : 0); // V2
    return { ...shownOf(state, state.info), reward, terminated, truncated };
  }

  async finish(): Promise<number> {
    const episode = this.#episode;
    if (episode === undefined || episode.isOver) return 0;
    episode.isOver = true;
    return this.#evaluate(episode); // V2
  }

  metrics(): Readonly<Record<string, number>> {
    return this.#episode?.metrics(this.#config.successReward) ?? {};
  }

  /** A server words its prompts itself, and knows how it reads the model's answer. */
  describe(): EnvironmentDescription {
    return { systemPrompt: "", promptTemplate: "{observation}", actionFormat: ActionFormat.text };
  }

  async close(): Promise<void> {
    const episode = this.#episode;
    if (episode === undefined) return;
    episode.isOver = true;
    await episode.session.release();
  }

  get #evaluates(): boolean {
    return this.#config.evaluate ?? this.#config.protocol === ServiceProtocol.agentjet;
  }

  get #takesStepRewards(): boolean {
    return this.#config.stepRewards ?? !this.#evaluates;
  }

  /** @returns 0 where the server is not asked. */
  async #evaluate(episode: Episode): Promise<number> {
    if (!this.#evaluates || episode.session.evaluate === undefined) return 0;
    episode.score = await episode.session.evaluate();
    return episode.score;
  }

  #running(): Episode {
    return runningEpisode(this.#episode, ({ isOver }) => isOver, "the environment service");
  }
}

function shownOf({ observation, messages }: ServiceState, info: EnvironmentInfo): EnvironmentReset {
  return { observation, info, ...(messages !== undefined && { messages }) };
}
