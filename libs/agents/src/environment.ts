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

const environments = new Registry<EnvironmentDefinition<unknown>>("an environment");

/**
 * Makes an environment known by name.
 * @throws {DuplicateNameError} when the name is taken.
 */
export function registerEnvironment<Config>(name: string, definition: EnvironmentDefinition<Config>): void {
  environments.add(name, {
    configSchema: definition.configSchema,
    create: (config) => definition.create(config as Config),
  });
}

export function environmentOf(name: string): EnvironmentDefinition<unknown> | undefined {
  return environments.get(name);
}

export function environmentNames(): string[] {
  return environments.names();
}
