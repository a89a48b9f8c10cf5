/** Checks whether an inference server can generate for a run. */

import { type ConfigProblem, problemMessage, type RunConfig } from "@hone/config";
import { type ModelConfig, ModelSpecError, specFromConfig } from "@hone/nn";
import { OnNewVersion, Quantization } from "@hone/rl";
import type { SamplingBounds, ServerFacts } from "./engine-server.ts";
import { differenceOf } from "./read-server-policy.ts";
import { brokenSamplingRules } from "./sampling-rules.ts";

/** @param model config.json of the run's model; undefined = not known, and then not compared. */
export function checkServerRun(
  run: RunConfig,
  model: ModelConfig | undefined,
  facts: ServerFacts,
  bounds: SamplingBounds,
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report = (key: string, value: unknown, allowed: string) => {
    problems.push({ key, value, allowed, message: problemMessage(key, value, allowed) });
  };
  const { maxContextTokens, sampling } = run.rollout;
  if (maxContextTokens > facts.maxContextTokens) {
    const most = `at most ${facts.maxContextTokens}, the context of ${facts.name}`;
    report("rollout.maxContextTokens", maxContextTokens, most);
  }
  for (const { key, value, allowed } of brokenSamplingRules(sampling, facts.scoring, bounds)) {
    report(`rollout.sampling.${key}`, value, allowed);
  }
  if ("path" in run.model && run.model.lora !== undefined && !facts.takesAdapters) {
    report("model.lora", run.model.lora, `left out, as ${facts.name} was started without adapters`);
  }
  const { quantization } = run.rollout;
  if (quantization !== Quantization.none) {
    const why = `as ${facts.name} was started with the type that it computes in`;
    report("rollout.quantization", quantization, `none, ${why}`);
  }
  const { onNewVersion } = run.trainer;
  if (onNewVersion === OnNewVersion.keep) {
    const why = `as the weights of ${facts.name} are changed only while nothing runs on them, so that the version of each token is known`;
    report("trainer.onNewVersion", onNewVersion, `recompute or finish, ${why}`);
  }
  try {
    if (model !== undefined && facts.startSpec !== undefined) {
      const difference = differenceOf(specFromConfig(model), facts.startSpec);
      const allowed = `the model that ${facts.name} serves, ${facts.startModel}`;
      if (difference !== undefined) report("model", run.model, `${allowed}: it has ${difference}`);
    }
  } catch (error) {
    if (!(error instanceof ModelSpecError)) throw error;
    report("model", run.model, error.message);
  }
  return problems;
}
