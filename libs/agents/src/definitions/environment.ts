/** Environments: gym-like, text in and text out, found by name. */

import type { z } from "zod";
import { Registry } from "./registry.ts";

/** What an environment says beside the observation; goes into the turn's record and into prompt templates. */
export type EnvironmentInfo = Readonly<Record<string, string | number | boolean | null>>;

/** The first observation of an episode. */
export interface EnvironmentReset {
  readonly observation: string;
  readonly info: EnvironmentInfo;
}

/** What followed an action. */
export interface EnvironmentStep extends EnvironmentReset {
  readonly reward: number;
  /** The episode came to its end. */
  readonly terminated: boolean;
  /** A limit of the environment cut it off. */
  readonly truncated: boolean;
}

/** One episode at a time. A failure that is not the agent's is thrown as a RetryableError. */
export interface Environment {
  /** Starts the episode that the seed names; the same seed gives the same episode for the same actions. */
  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset;
  /** Takes what the model answered, verbatim. */
  step(answer: string): Promise<EnvironmentStep> | EnvironmentStep;
  /** Figures of the episode so far, such as `{ success: 1 }`. */
  metrics(): Readonly<Record<string, number>>;
  /** Answers that `step` takes as legal in the present state; absent = it cannot tell. Scripted policies read it. */
  legalAnswers?(): readonly string[];
  /** Gives back what it holds. */
  close?(): Promise<void> | void;
}

/** How to make an environment. */
export interface EnvironmentDefinition<Config> {
  /** Checks the task's configuration and fills in defaults. */
  readonly configSchema: z.ZodType<Config>;
  create(config: Config): Environment;
}

/** An environment of any configuration, as modules of a run export it: `export const environments = { mine: defineEnvironment({…}) }`. */
export function defineEnvironment<Config>(
  definition: EnvironmentDefinition<Config>,
): EnvironmentDefinition<unknown> {
  return {
    configSchema: definition.configSchema,
    create: (config) => definition.create(config as Config),
  };
}

const environments = new Registry<EnvironmentDefinition<unknown>>("an environment");

/**
 * Makes an environment known by name.
 * @throws {DuplicateNameError} when the name is taken.
 */
export function registerEnvironment<Config>(name: string, definition: EnvironmentDefinition<Config>): void {
  environments.add(name, defineEnvironment(definition));
}

/** @param own those of a run's own modules, which go before those that come with Hone. */
export function environmentOf(
  name: string,
  own: Readonly<Record<string, EnvironmentDefinition<unknown>>> = {},
): EnvironmentDefinition<unknown> | undefined {
  return Object.hasOwn(own, name) ? own[name] : environments.get(name);
}

/** @param own see {@link environmentOf}. */
export function environmentNames(own: Readonly<Record<string, unknown>> = {}): string[] {
  return [...Object.keys(own), ...environments.names()];
}
