/** Chooses what writes the model's answers in a rollout of `hone debug`. */

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

/** The command's options that choose a policy. */
export interface PolicyArgs {
  readonly policy: string | undefined;
  /** Path of a file of answers. */
  readonly answers: string | undefined;
  readonly endpoint: NamedEndpoint | undefined;
  readonly model: FoundModel | undefined;
}

const KINDS = ["model", "random", "answers", "endpoint"] as const;

/** @throws {UsageError} when the options contradict one another. */
export async function choosePolicy(args: PolicyArgs): Promise<PolicyChoice> {
  const { policy = impliedBy(args), answers, endpoint, model } = args;
  const need = (option: string): never => {
    throw new UsageError(`the policy ${policy} needs ${option}`);
  };
  const spare = [
    ...(answers !== undefined && policy !== "answers" ? ["--answers"] : []),
    ...(endpoint !== undefined && policy !== "endpoint" ? ["--endpoint"] : []),
    ...(model !== undefined && policy !== "model" ? ["--model"] : []),
  ];
  if (spare.length > 0) {
    throw new UsageError(`the policy ${policy} does not take ${spare.join(", ")}`);
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
      throw new UsageError(`there is no policy ${policy}; --policy must be ${problem.allowed}`);
    }
  }
}

function impliedBy({ answers, endpoint }: PolicyArgs): string {
  if (answers !== undefined) return "answers";
  return endpoint === undefined ? "model" : "endpoint";
}

export function describePolicy(choice: PolicyChoice): string {
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
  /** Name of the model in the rollout's requests. */
  readonly model: string;
  readonly version: number;
  readonly maxCacheBytes: number;
}

/** Opens the chosen policy. A script or an endpoint is part of the rollout's job, which opens it, so it must not be asked here. */
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
        generate: () =>
          Promise.reject(new TypeError(`a rollout with the policy ${choice.kind} must not ask another one`)),
      };
  }
}

/** A YAML or JSON list of texts. */
async function readAnswers(file: string): Promise<string[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(`the file of answers ${file} cannot be read`, { cause });
  }
  const value = parseYaml(text, file);
  if (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string"))
    return value;
  throw new UsageError(
    `${file} is not a list of texts, one for each answer: ${JSON.stringify(value).slice(0, 200)}`,
  );
}
