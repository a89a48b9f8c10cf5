/** Environments in the style of Gym, with text as input and output; they are registered by name. */

import type { z } from "zod";
import { Registry } from "./registry.ts";

/** What an environment reports beside the observation, for the turn's record and for prompt templates. */
export type EnvironmentInfo = Readonly<Record<string, string | number | boolean | null>>;

/** The first observation of an episode. */
export interface EnvironmentReset {
  readonly observation: string;
  readonly info: EnvironmentInfo;
}

/** The result of an action. */
export interface EnvironmentStep extends EnvironmentReset {
  readonly reward: number;
  /** Whether the episode reached its end. */
  readonly terminated: boolean;
  /** Whether a limit of the environment cut the episode off. */
  readonly truncated: boolean;
}

/** Runs one episode at a time. It throws a RetryableError for a failure that is not the agent's fault. */
export interface Environment {
  /** Starts the episode that the seed names; the same seed gives the same episode for the same actions. */
  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset;
  /** Takes the model's answer, verbatim. */
  step(answer: string): Promise<EnvironmentStep> | EnvironmentStep;
  /** Metrics of the episode so far, such as `{ success: 1 }`. */
  metrics(): Readonly<Record<string, number>>;
  /** The legal answers in the current state, for scripted policies; absent = the environment cannot list them. */
  legalAnswers?(): readonly string[];
  /** Releases its resources. */
  close?(): Promise<void> | void;
}

/** How to make an environment. */
export interface EnvironmentDefinition<Config> {
  /** Checks the task's configuration and fills in defaults. */
  readonly configSchema: z.ZodType<Config>;
  create(config: Config): Environment;
}

/** Defines an environment that a module of a run exports: `export const environments = { mine: defineEnvironment({…}) }`. */
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
 * Registers an environment by name.
 * @throws {DuplicateNameError} when the name is taken.
 */
export function registerEnvironment<Config>(name: string, definition: EnvironmentDefinition<Config>): void {
  environments.add(name, defineEnvironment(definition));
}

/** @param own environments of a run's own modules; they take precedence over those that come with Hone. */
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
