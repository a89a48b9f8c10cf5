/** Who writes the model's answers in a rollout that is debugged. */

import { readFile } from "node:fs/promises";
import { type Policy, scriptNames, unknownName } from "@hone/agents";
import { parseYaml } from "@hone/config";
import type { Tokenizer } from "@hone/tokenizer";
import type { StartWeights } from "@hone/trainer/start-model";
import { UsageError } from "../errors.ts";
import type { NamedEndpoint } from "../run/endpoint-args.ts";
import type { FoundModel, ModelPlace } from "../run/find-model.ts";
import { openEnginePolicy } from "./engine-policy.ts";
import { answersPolicy, randomPolicy } from "./own-policies.ts";

export type PolicyChoice =
  /** @param place undefined = the run's start model. */
  | { readonly kind: "model"; readonly place: ModelPlace | undefined; readonly shown: string }
  | { readonly kind: "random" }
  | { readonly kind: "answers"; readonly answers: readonly string[] }
  | { readonly kind: "script"; readonly name: string }
  | { readonly kind: "endpoint"; readonly endpoint: NamedEndpoint };

/** What the options of the command name. */
export interface PolicyArgs {
  readonly policy: string | undefined;
  /** File of answers. */
  readonly answers: string | undefined;
  readonly endpoint: NamedEndpoint | undefined;
  readonly model: FoundModel | undefined;
}

const KINDS = ["model", "random", "answers", "endpoint"] as const;

/** @throws {UsageError} when the options do not go together. */
export async function choosePolicy(args: PolicyArgs): Promise<PolicyChoice> {
  const { policy = impliedBy(args), answers, endpoint, model } = args;
  const need = (option: string): never => {
    throw new UsageError(`Cannot play as the policy ${policy} needs ${option}: current value is none`);
  };
  const spare = [
    ...(answers !== undefined && policy !== "answers" ? ["--answers"] : []),
    ...(endpoint !== undefined && policy !== "endpoint" ? ["--endpoint"] : []),
    ...(model !== undefined && policy !== "model" ? ["--model"] : []),
  ];
  if (spare.length > 0) {
    throw new UsageError(
      `Cannot play as the policy ${policy} takes no ${spare.join(", ")}: current value is ${spare.join(", ")}`,
    );
  }
  switch (policy) {
    case "model":
      return { kind: "model", place: model?.place, shown: model?.shown ?? "the start model" };
    case "random":
      return { kind: "random" };
    case "answers":
      return { kind: "answers", answers: await readAnswers(answers ?? need("--answers")) };
    case "endpoint":
      return { kind: "endpoint", endpoint: endpoint ?? need("--endpoint") };
    default: {
      const [problem] = unknownName(policy, [...KINDS, ...scriptNames()]);
      if (problem === undefined) return { kind: "script", name: policy };
      throw new UsageError(`Cannot play as --policy must be ${problem.allowed}: current value is ${policy}`);
    }
  }
}

function impliedBy({ answers, endpoint }: PolicyArgs): string {
  if (answers !== undefined) return "answers";
  return endpoint === undefined ? "model" : "endpoint";
}

export function shownPolicy(choice: PolicyChoice): string {
  switch (choice.kind) {
    case "model":
      return choice.shown;
    case "random":
      return "random tokens";
    case "answers":
      return `${choice.answers.length} written answers`;
    case "script":
      return `the script ${choice.name}`;
    case "endpoint":
      return `${choice.endpoint.model} at ${choice.endpoint.baseUrl}`;
  }
}

export interface OpenPolicyOptions {
  readonly tokenizer: Tokenizer;
  readonly weights: () => Promise<StartWeights>;
  /** Name under which the rollout asks. */
  readonly model: string;
  readonly version: number;
  readonly maxCacheBytes: number;
}

/** The policy of a choice. What the rollout's own job names, a script or an endpoint, never comes here. */
export async function openPolicy(
  choice: PolicyChoice,
  options: OpenPolicyOptions,
): Promise<Policy & Partial<AsyncDisposable>> {
  switch (choice.kind) {
    case "model":
      return openEnginePolicy({ ...options, weights: await options.weights() });
    case "random":
      return randomPolicy(options.tokenizer);
    case "answers":
      return answersPolicy(choice.answers, options.tokenizer);
    case "script":
    case "endpoint":
      return {
        generate: () => Promise.reject(new TypeError(`a rollout of ${choice.kind} asks no other policy`)),
      };
  }
}

/** A YAML or JSON list of texts. */
async function readAnswers(file: string): Promise<string[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`Cannot read answers as their file must be there: current value is ${file}`, {
      cause,
    });
  }
  const value = parseYaml(text, file);
  if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string"))
    return value;
  throw new UsageError(
    `Cannot play answers as ${file} must hold a list of texts: current value is ${JSON.stringify(value).slice(0, 200)}`,
  );
}
