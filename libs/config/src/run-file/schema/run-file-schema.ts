/** The schema of a run file: its keys, and the rules between keys. */

import { contradictions } from "./contradictions/contradictions.ts";
import { type ModelInit, type RunConfig, runFileKeys } from "./schema.ts";

export const runFileSchema = runFileKeys.check((context) => {
  for (const problem of crossFieldProblems(context.value)) {
    context.issues.push({
      code: "custom",
      input: context.value,
      path: [...problem.path],
      message: problem.allowed,
    });
  }
});

function* crossFieldProblems(
  run: Pick<RunConfig, "model"> & Parameters<typeof contradictions>[0],
): Generator<{ path: PropertyKey[]; allowed: string }> {
  if ("init" in run.model) yield* initProblems(run.model.init, run.rollout.maxContextTokens);
  yield* contradictions(run);
  if (run.rollout.sampling.maxNewTokens > run.rollout.maxContextTokens) {
    yield {
      path: ["rollout", "sampling", "maxNewTokens"],
      allowed: `at most rollout.maxContextTokens (${run.rollout.maxContextTokens})`,
    };
  }
  if (run.trainer.minibatches > run.rollout.tasksPerStep) {
    yield {
      path: ["trainer", "minibatches"],
      allowed: `at most rollout.tasksPerStep (${run.rollout.tasksPerStep})`,
    };
  }
  for (const split of ["train", "eval"] as const) {
    const source = run.dataset[split];
    if (source?.source === "environment" && source.seeds.from >= source.seeds.to) {
      yield { path: ["dataset", split, "seeds", "to"], allowed: `greater than from (${source.seeds.from})` };
    }
  }
}

function* initProblems(
  init: ModelInit,
  maxContextTokens: number,
): Generator<{ path: PropertyKey[]; allowed: string }> {
  const headDim = init.headDim ?? init.hiddenSize / init.numHeads;
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    yield {
      path: ["model", "init", "numHeads"],
      allowed: "such that hiddenSize / numHeads is an even whole number, or headDim given",
    };
  }
  if (init.numHeads % (init.numKvHeads ?? init.numHeads) !== 0) {
    yield { path: ["model", "init", "numKvHeads"], allowed: `a divisor of numHeads (${init.numHeads})` };
  }
  if (maxContextTokens > init.maxPositions) {
    yield {
      path: ["rollout", "maxContextTokens"],
      allowed: `at most model.init.maxPositions (${init.maxPositions})`,
    };
  }
}
