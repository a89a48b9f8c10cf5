/** Environments in the style of Gym, with text as input and output; they are registered by name. */

import type { BoundKeys } from "@hone/config";
import type { z } from "zod";
import { Registry } from "./registry.ts";

/** What an environment reports beside the observation, for the turn's record and for prompt templates. */
export type EnvironmentInfo = Readonly<Record<string, string | number | boolean | null>>;

/** A message of an environment that speaks in messages. */
export interface EnvironmentMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** The first observation of an episode. */
export interface EnvironmentReset {
  readonly observation: string;
  readonly info: EnvironmentInfo;
  /**
   * The same observation as messages, for an environment that words its prompts itself; the agent `gym` shows them as they
   * are. Absent = the agent's template shows the observation.
   */
  readonly messages?: readonly EnvironmentMessage[];
}

/** The result of an action. */
export interface EnvironmentStep extends EnvironmentReset {
  readonly reward: number;
  /** Whether the episode reached its end. */
  readonly terminated: boolean;
  /** Whether a limit of the environment cut the episode off. */
  readonly truncated: boolean;
}

/** How actions stand in the model's answers, by the name in {@link EnvironmentDescription.actionFormat}. */
export const ActionFormat = {
  /** The first `<answer>…</answer>`. */
  answer: "answer",
  /** `<think>…</think>`, white space, `<answer>…</answer>`; an answer without its thoughts is no action. */
  thinkAnswer: "think_answer",
  /** The last block between two lines or words of three backquotes. */
  codeBlock: "code_block",
  /** The whole answer. */
  text: "text",
  /** A call of one of the environment's tools. */
  toolCall: "tool_call",
} as const;
export type ActionFormat = (typeof ActionFormat)[keyof typeof ActionFormat];

/** An action, or a kind of actions, that a model takes by a tool call. */
export interface ActionTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The action of a call; undefined = the arguments name none. */
  actionOf(args: Readonly<Record<string, unknown>>): string | undefined;
  /** The arguments of an action, for scripted policies; undefined = it is not an action of this tool. */
  argumentsOf(action: string): Readonly<Record<string, unknown>> | undefined;
}

/** How an environment introduces itself to a model. The agent `gym` reads it; its own configuration comes first. */
export interface EnvironmentDescription {
  /** The first message. @default that of the agent's preset */
  readonly systemPrompt?: string;
  /** What the task is, which actions there are, and what the symbols mean; shown before the first observation. @default none */
  readonly instruction?: string;
  /** The prompt of a turn. @default that of the agent's preset */
  readonly promptTemplate?: string;
  /** Where the action stands in the model's answer. @default that of the agent's preset */
  readonly actionFormat?: ActionFormat;
  /** All actions, where they are always the same; the placeholder `{actions}`. */
  readonly actions?: readonly string[];
  /** Entries of `info` that prompt templates may show. Absent = not known in advance. */
  readonly infoKeys?: readonly string[];
  /** For the format `tool_call`. Absent = the environment has no tools. */
  readonly tools?: readonly ActionTool[];
}

/**
 * Runs one episode at a time. It throws a RetryableError for a failure that is not the agent's fault, and an
 * EnvironmentRefusedError where no attempt could play this task.
 */
export interface Environment {
  /** Starts the episode that the seed names; the same seed gives the same episode for the same actions. */
  reset(seed: number): Promise<EnvironmentReset> | EnvironmentReset;
  /**
   * Takes an action as text. The agent `gym` passes what it read from the model's answer, and the empty text where it could
   * read none; an agent of one's own may pass anything.
   */
  step(action: string): Promise<EnvironmentStep> | EnvironmentStep;
  /**
   * Ends an episode that was still open when the agent returned or reached a limit, such as `rollout.maxTurns`. It is called
   * at most once, and not where the attempt failed or ran out of time. Absent = such an end brings nothing.
   * @returns a reward, which goes to the turn that acted last.
   */
  finish?(): Promise<number> | number;
  /** Metrics of the episode so far, such as `{ success: 1 }`. */
  metrics(): Readonly<Record<string, number>>;
  /**
   * How the agent `gym` introduces it to the model; known before the reset. Absent = by the agent's preset alone.
   * @param format where the model's actions will stand, as instructions often say it; undefined = the environment's choice.
   */
  describe?(format?: ActionFormat): EnvironmentDescription;
  /** The legal actions in the current state, for scripted policies; absent = the environment cannot list them. */
  legalActions?(): readonly string[];
  /**
   * An action on the way to a success from the current state, for demonstrations by scripted policies; undefined = no action leads
   * there any more. Absent = the environment does not know.
   */
  expertAction?(): string | undefined;
  /**
   * Draws the current state. It is not called while a rollout is played: episodes that somebody wants to see are played again with
   * the recorded actions. Absent or undefined = the observation is shown.
   */
  render?(): Promise<EnvironmentFrame | undefined> | EnvironmentFrame | undefined;
  /** Releases its resources. */
  close?(): Promise<void> | void;
}

/** What the process that makes an environment provides. */
export interface EnvironmentContext {
  /** Keys of servers, each bound to the hosts that it may be sent to. */
  readonly keys: BoundKeys;
}

/** How an environment draws its state, for people; models are shown the observation. */
export type EnvironmentFrame =
  | { readonly kind: "text"; readonly text: string }
  /** A complete SVG document with width and height. Its `<title>` says in words what can be seen. */
  | { readonly kind: "svg"; readonly svg: string }
  /** A PNG file. */
  | { readonly kind: "png"; readonly bytes: Uint8Array };

/** How to make an environment. */
export interface EnvironmentDefinition<Config> {
  /** Checks the task's configuration and fills in defaults. */
  readonly configSchema: z.ZodType<Config>;
  /** Whether it acts outside of this process, so that an episode is not played again to be looked at. @default false */
  readonly isRemote?: boolean;
  /**
   * Makes one without starting or asking anything: a run's environments are also made to check them.
   * @throws {InvalidInputError} where a key of the configuration cannot be used here.
   */
  create(config: Config, context?: EnvironmentContext): Environment;
}

/** Defines an environment that a module of a run exports: `export const environments = { mine: defineEnvironment({…}) }`. */
export function defineEnvironment<Config>(
  definition: EnvironmentDefinition<Config>,
): EnvironmentDefinition<unknown> {
  return {
    configSchema: definition.configSchema,
    isRemote: definition.isRemote ?? false,
    create: (config, context) => definition.create(config as Config, context),
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
