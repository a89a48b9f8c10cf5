/**
 * Scripts that take the model's place: they make data for a warm start, and load without an engine.
 *
 * The text of a script was not sampled from a policy, so it has no logprobs and no version: the supervised phase can learn
 * from it, and reinforcement learning refuses it.
 */

import { InvalidInputError, Random } from "@hone/core";
import { FinishReason } from "@hone/rl";
import type { Tokenizer } from "@hone/tokenizer";
import type { Environment } from "../definitions/environment.ts";
import { Registry } from "../definitions/registry.ts";
import type { GenerateCall, Policy, PolicyGeneration } from "./policy.ts";

/** Chooses an action in the current state of an environment. */
export type Script = (environment: Environment, random: Random) => string;

const scripts = new Registry<Script>("a scripted policy");

/** One of the legal actions, all equally likely. */
scripts.add("random_legal", function randomLegal(environment, random) {
  const actions = environment.legalActions?.() ?? [];
  if (actions.length === 0) {
    throw new InvalidInputError("Cannot act at random: the environment names no legal actions", {
      path: "scriptedPolicy",
      allowed: "an environment that names its legal actions",
    });
  }
  return random.pick(actions);
});

/** What somebody who knows the way would do; where nothing helps any more, the first legal action. */
scripts.add("expert", function actAsExpert(environment) {
  if (environment.expertAction === undefined) {
    throw new InvalidInputError(
      "Cannot act as an expert: the environment does not know how its tasks are solved",
      {
        path: "scriptedPolicy",
        allowed: "an environment that has expertAction",
      },
    );
  }
  return environment.expertAction() ?? environment.legalActions?.()[0] ?? "";
});

export function scriptOf(name: string): Script | undefined {
  return scripts.get(name);
}

export function scriptNames(): string[] {
  return scripts.names();
}

/** What a scripted policy acts with. */
export interface ScriptedPolicyOptions {
  readonly script: Script;
  readonly environment: Environment;
  readonly tokenizer: Tokenizer;
  /** The answer from which the agent reads an action. */
  readonly write: (action: string) => string;
}

/** A policy that answers with a script's action and the end of the turn. */
export class ScriptedPolicy implements Policy {
  readonly #options: ScriptedPolicyOptions;

  constructor(options: ScriptedPolicyOptions) {
    this.#options = options;
  }

  async generate(call: GenerateCall): Promise<PolicyGeneration> {
    const { script, environment, tokenizer, write } = this.#options;
    const text = write(script(environment, new Random(call.seed)));
    const stopTokenId = tokenizer.eosTokenId;
    const ids = tokenizer.encode(text);
    return {
      tokenIds: stopTokenId === undefined ? ids : [...ids, stopTokenId],
      logprobs: [],
      versions: [],
      finishReason: stopTokenId === undefined ? FinishReason.length : FinishReason.stop,
      cachedTokens: 0,
      generationMs: 0,
      replica: "",
    };
  }
}
