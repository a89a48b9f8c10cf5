/** Checks for keys of a run file that are allowed one by one but contradict each other, and for options that have no effect. */

import {
  comparesGroup,
  MAX_QUANTIZED_TOKENS,
  OnNewVersion,
  playsBaseline,
  Quantization,
  readsReward,
  readsValues,
  turnRewardKey,
} from "@hone/rl";
import { GROUND_TRUTH_JUDGES } from "../judges.ts";
import { isTraining, trainingQuantization } from "../run-kind.ts";
import type { RunConfig } from "../schema.ts";
import { environmentOfTasks, judgesOfPart, type TaskPart, taskPartsOf } from "../task-parts.ts";
import type { Contradiction } from "./contradiction.ts";
import { laterContradictions } from "./later-contradictions.ts";
import { curriculumContradictions, mixContradictions } from "./mix-contradictions.ts";
import { policyContradictions } from "./policy-contradictions.ts";
import { ofSchedule } from "./schedule-contradictions.ts";

/** The trainer holds all episodes of a step in memory, and the queue all jobs of a step. */
export const MAX_ROLLOUTS_PER_STEP = 50_000;
/** Held-out tasks of one evaluation, each played with sampling and greedily. */
export const MAX_EVAL_TASKS = 20_000;

type Checked = Pick<
  RunConfig,
  | "algorithm"
  | "dataset"
  | "judge"
  | "model"
  | "policies"
  | "replay"
  | "roles"
  | "rollout"
  | "trainer"
  | "warmStart"
>;

/** All contradictions in a run file whose keys are valid one by one. */
export function* contradictions(run: Checked): Generator<Contradiction> {
  yield* rolloutContradictions(run);
  yield* asynchronyContradictions(run);
  yield* quantizationContradictions(run);
  yield* scheduleContradictions(run);
  yield* criticContradictions(run);
  yield* distillationContradictions(run);
  yield* evaluationContradictions(run);
  yield* mixContradictions(run);
  yield* judgeContradictions(run);
  yield* laterContradictions(run);
  yield* policyContradictions(run);
  yield* turnContradictions(run);
  yield* rewardContradictions(run);
  yield* curriculumContradictions(run.dataset.curriculum, ["dataset", "curriculum"]);
  yield* warmStartContradictions(run);
  yield* replayContradictions(run);
  if (!isTraining(run) && run.dataset.eval === undefined) {
    yield {
      path: ["trainer", "steps"],
      allowed: "at least 1 where there is neither warmStart nor dataset.eval",
    };
  }
}

/** Judges that can reward single turns. */
const TURN_JUDGES: ReadonlySet<string> = new Set(["environment", "module", "http"]);

function* turnContradictions({ algorithm, judge }: Checked): Generator<Contradiction> {
  const key = turnRewardKey(algorithm.advantage);
  if (key === undefined) return;
  const path = ["algorithm", "advantage"];
  if (!judge.some(({ kind }) => TURN_JUDGES.has(kind))) {
    const kinds = [...TURN_JUDGES].join(", ");
    const allowed = `${key === "turnRewards" ? "left out" : "another one"} where no judge rewards single turns (one of the kinds ${kinds})`;
    yield { path: [...path, key], allowed };
  }
  const { advantage } = algorithm;
  const turns = advantage.kind === "gigpo" ? advantage : "turnRewards" in advantage && advantage.turnRewards;
  if (turns && turns.weight === 0 && turns.episodeWeight === 0) {
    const below = advantage.kind === "gigpo" ? path : [...path, "turnRewards"];
    yield { path: [...below, "weight"], allowed: "greater than 0 where episodeWeight is 0" };
  }
}

/** Rewards that are shaped in a way that contradicts itself, or that the advantage does not read. */
function* rewardContradictions({ algorithm, rollout }: Checked): Generator<Contradiction> {
  const { overlong, normalize, clip, kl } = algorithm.reward;
  const path = ["algorithm", "reward"];
  if (overlong !== undefined && overlong.buffer > overlong.limit) {
    yield { path: [...path, "overlong", "buffer"], allowed: `at most overlong.limit (${overlong.limit})` };
  }
  if (normalize !== undefined && rollout.groupSize === 1) {
    const { mean, std } = normalize;
    const moment = mean === "group" ? "mean" : std === "group" ? "std" : undefined;
    if (moment !== undefined)
      yield {
        path: [...path, "normalize", moment],
        allowed: '"batch" or "none" where rollout.groupSize is 1',
      };
  }
  const { kind } = algorithm.advantage;
  if (playsBaseline(algorithm.advantage)) {
    // The baseline is the reward of one rollout as its judges gave it.
    const allowed = `left out, as advantage.kind "${kind}" compares with a rollout whose reward is not shaped`;
    for (const [key, value] of Object.entries({ overlong, normalize, clip: clip ?? undefined })) {
      if (value !== undefined) yield { path: [...path, key], allowed };
    }
  }
  if (readsReward(algorithm.advantage)) return;
  const allowed = `left out, as advantage.kind "${kind}" does not read the rewards of episodes here`;
  if (normalize !== undefined) yield { path: [...path, "normalize"], allowed };
  if (clip !== null) yield { path: [...path, "clip"], allowed };
  if (kl !== undefined) yield { path: [...path, "kl"], allowed };
}

/** Problems that a judge would otherwise find with every episode, so that all episodes would be lost. */
function* judgeContradictions(run: Checked): Generator<Contradiction> {
  const parts = taskPartsOf(run);
  const isOfEnvironments = parts.some(
    ({ name, tasks }) => isPlayed(tasks) && judgesOfPart(run, name) === run.judge,
  );
  if (isOfEnvironments) yield* environmentJudges(run.judge, ["judge"]);
  for (const { path, tasks, part } of parts) {
    if (part?.judge !== undefined && isPlayed(tasks)) {
      yield* environmentJudges(part.judge, [...path.slice(0, -1), "judge"]);
    }
  }
}

/** The judges of the run, and those of the parts of a mix that have their own. */
function judgeListsOf(
  run: Pick<Checked, "dataset" | "judge">,
): readonly { readonly path: readonly PropertyKey[]; readonly judges: RunConfig["judge"] }[] {
  const ofParts = taskPartsOf(run).flatMap(({ path, part }) =>
    part?.judge === undefined ? [] : [{ path: [...path.slice(0, -1), "judge"], judges: part.judge }],
  );
  return [{ path: ["judge"], judges: run.judge }, ...ofParts];
}

/** Whether the tasks are environments and not rows. */
function isPlayed(tasks: TaskPart["tasks"]): boolean {
  return environmentOfTasks(tasks) !== undefined;
}

/** Judges that read what only rows have. */
function* environmentJudges(judges: RunConfig["judge"], path: PropertyKey[]): Generator<Contradiction> {
  for (const [index, { kind, dataSources }] of judges.entries()) {
    if (dataSources !== undefined) {
      yield { path: [...path, index, "dataSources"], allowed: "left out where tasks are environments" };
    } else if (GROUND_TRUTH_JUDGES.has(kind)) {
      const allowed = `another kind, as "${kind}" compares with the ground truth of rows and an environment has none`;
      yield { path: [...path, index, "kind"], allowed };
    }
  }
}

function* rolloutContradictions({ rollout, algorithm, dataset, judge }: Checked): Generator<Contradiction> {
  const { tasksPerStep, groupSize, redundancy } = rollout;
  const usesRewards = algorithm.distillation?.useRewards ?? true;
  if (groupSize === 1 && usesRewards && comparesGroup(algorithm.advantage)) {
    const why = `as ${algorithm.advantage.kind} compares the rollouts of a group`;
    yield { path: ["rollout", "groupSize"], allowed: `at least 2, ${why}` };
  }
  if (playsBaseline(algorithm.advantage)) {
    const allowed = `another kind where advantage.kind is "${algorithm.advantage.kind}", whose baseline is in no group`;
    for (const { path, judges } of judgeListsOf({ dataset, judge })) {
      const group = judges.findIndex(({ kind }) => kind === "group");
      if (group >= 0) yield { path: [...path, group, "kind"], allowed };
    }
  }
  const { dynamicSampling, advantage } = algorithm;
  if (dynamicSampling !== undefined && groupSize === 1) {
    const allowed = "left out where rollout.groupSize is 1, as nothing differs within a group of one";
    yield { path: ["algorithm", "dynamicSampling"], allowed };
  }
  if (redundancy !== undefined && playsBaseline(advantage)) {
    const allowed = `left out where advantage.kind is "${advantage.kind}", which waits for the baseline of each task`;
    yield { path: ["rollout", "redundancy"], allowed };
  }
  const perTask = groupSize + (redundancy?.rollouts ?? 0) + Number(playsBaseline(advantage));
  const perBatch = (tasksPerStep + (redundancy?.tasks ?? 0)) * perTask;
  const count = perBatch * (dynamicSampling?.maxBatches ?? 1);
  if (count > MAX_ROLLOUTS_PER_STEP) {
    const parts = "baselines, redundancy and batches of dynamic sampling included";
    yield {
      path: ["rollout", "tasksPerStep"],
      allowed: `such that a step has at most ${MAX_ROLLOUTS_PER_STEP} rollouts, ${parts}; here it may have ${count}`,
    };
  }
}

/** What a run does not offer where the steps of its rollouts are not known when they are asked for. */
function* asynchronyContradictions({ rollout, algorithm, trainer }: Checked): Generator<Contradiction> {
  const { maxStaleness, onNewVersion } = trainer;
  if (maxStaleness === 0) {
    if (onNewVersion !== OnNewVersion.recompute) {
      const why = "no generation is under way when a version is published";
      yield { path: ["trainer", "onNewVersion"], allowed: `left out where maxStaleness is 0, as ${why}` };
    }
    return;
  }
  const allowed = `left out where trainer.maxStaleness is ${maxStaleness}`;
  if (rollout.redundancy !== undefined) {
    const why = "as groups that finish late are kept for later steps";
    yield { path: ["rollout", "redundancy"], allowed: `${allowed}, ${why}` };
  }
  if (algorithm.dynamicSampling !== undefined) yield { path: ["algorithm", "dynamicSampling"], allowed };
  const perTask = rollout.groupSize + Number(playsBaseline(algorithm.advantage));
  const count = (maxStaleness + 1) * rollout.tasksPerStep * perTask;
  if (count > MAX_ROLLOUTS_PER_STEP) {
    yield {
      path: ["trainer", "maxStaleness"],
      allowed: `such that at most ${MAX_ROLLOUTS_PER_STEP} rollouts are out, those of maxStaleness + 1 steps; here it would be ${count}`,
    };
  }
}

function* quantizationContradictions(run: Checked): Generator<Contradiction> {
  const { engine } = run.trainer;
  if (engine.kind !== "onnx" || !engine.quantizedGradients) return;
  if (trainingQuantization(run) === Quantization.none) {
    const why = "as training computes in float32";
    yield { path: ["trainer", "engine", "quantizedGradients"], allowed: `false, ${why}` };
  }
  if (engine.microbatchTokens > MAX_QUANTIZED_TOKENS) {
    const why = "as gradients in eight bits are added up over the tokens of a pass in 32 bits";
    yield {
      path: ["trainer", "engine", "microbatchTokens"],
      allowed: `at most ${MAX_QUANTIZED_TOKENS} with quantizedGradients, ${why}`,
    };
  }
}

function* distillationContradictions({ algorithm, rollout }: Checked): Generator<Contradiction> {
  for (const [index, { model, endpoint }] of algorithm.distillation?.teachers.entries() ?? []) {
    const path = ["algorithm", "distillation", "teachers", index, "endpoint"];
    if (endpoint === undefined) continue;
    if (model !== undefined) yield { path, allowed: "left out where the teacher has a model" };
    if (rollout.sampling.temperature !== 1) {
      const allowed = `left out where rollout.sampling.temperature is ${rollout.sampling.temperature}, as servers score at temperature 1`;
      yield { path, allowed };
    }
  }
}

/** A critic is trained where the advantage compares with its values, and nowhere else. */
function* criticContradictions({ algorithm, rollout, trainer }: Checked): Generator<Contradiction> {
  const { critic } = trainer;
  const path = ["trainer", "critic"];
  const { kind } = algorithm.advantage;
  if (critic === undefined) {
    if (readsValues(algorithm.advantage)) {
      const allowed = `given ({} for the defaults), as advantage.kind "${kind}" compares with the values of a critic`;
      yield { path, allowed };
    }
    return;
  }
  if (!readsValues(algorithm.advantage)) {
    yield { path, allowed: `left out, as advantage.kind "${kind}" reads no values` };
  }
  const { minibatches, warmupSteps, optimizer } = critic;
  if (minibatches !== undefined && minibatches > rollout.tasksPerStep) {
    const allowed = `at most rollout.tasksPerStep (${rollout.tasksPerStep})`;
    yield { path: [...path, "minibatches"], allowed };
  }
  if (warmupSteps > trainer.steps) {
    yield { path: [...path, "warmupSteps"], allowed: `at most trainer.steps (${trainer.steps})` };
  }
  if (optimizer !== undefined) {
    yield* ofSchedule(optimizer.schedule, trainer.steps, [...path, "optimizer", "schedule"]);
  }
}

function scheduleContradictions({ trainer }: Checked): Generator<Contradiction> {
  return ofSchedule(trainer.optimizer.schedule, trainer.steps, ["trainer", "optimizer", "schedule"]);
}

function* warmStartContradictions({ warmStart }: Checked): Generator<Contradiction> {
  if (warmStart === undefined) return;
  const { policy, dataset, tasks } = warmStart;
  if (dataset === undefined) {
    const allowed = "given, or dataset in its place";
    if (policy === undefined) yield { path: ["warmStart", "policy"], allowed };
    else if (tasks === undefined) yield { path: ["warmStart", "tasks"], allowed: "given with a policy" };
    return;
  }
  const allowed = "left out where warmStart.dataset is given";
  if (policy !== undefined) yield { path: ["warmStart", "policy"], allowed };
  if (tasks !== undefined) yield { path: ["warmStart", "tasks"], allowed };
}

function* replayContradictions({ replay, trainer, warmStart }: Checked): Generator<Contradiction> {
  const { keepRollouts, keepStates, steps } = trainer;
  if (keepStates > 0 && !keepRollouts) {
    const allowed = "0 where trainer.keepRollouts is false, as a replay trains kept rollouts";
    yield { path: ["trainer", "keepStates"], allowed };
  }
  if (replay?.from === undefined) return;
  if (replay.from > steps) yield { path: ["replay", "from"], allowed: `at most trainer.steps (${steps})` };
  if (warmStart !== undefined) {
    const allowed = "left out where replay.from is given, as the replay begins with a kept state";
    yield { path: ["warmStart"], allowed };
  }
}

function* evaluationContradictions({ dataset, trainer, warmStart }: Checked): Generator<Contradiction> {
  const { every, tasks, modes, samples, passAt = [] } = trainer.eval;
  const source = dataset.eval;
  const path = ["trainer", "eval"];
  if (trainer.eval.endpoint !== undefined && (trainer.steps > 0 || warmStart !== undefined)) {
    yield { path: [...path, "endpoint"], allowed: "left out where the run trains" };
  }
  const tooMany = passAt.findIndex((k) => k > samples);
  if (tooMany >= 0)
    yield { path: [...path, "passAt", tooMany], allowed: `at most eval.samples (${samples})` };
  if (new Set(modes).size < modes.length) yield { path: [...path, "modes"], allowed: "each mode once" };
  if (samples > 1 && !modes.includes("sampled")) {
    yield { path: [...path, "samples"], allowed: "1 where nothing is sampled" };
  }
  if (source === undefined) {
    const allowed = "left out where there is no dataset.eval";
    if (every > 0) yield { path: [...path, "every"], allowed };
    if (tasks !== undefined) yield { path: [...path, "tasks"], allowed };
    return;
  }
  const parts = taskPartsOf({ dataset }).filter(({ split }) => split === "eval");
  const sizes = parts.map(({ tasks: { source: kind, ...part } }) =>
    kind === "environment" && "seeds" in part ? part.seeds.to - part.seeds.from : undefined,
  );
  const count = sizes.reduce<number>((sum, size = 0) => sum + size, 0);
  if (count > MAX_EVAL_TASKS) {
    const last = parts.findLast((_, index) => sizes[index] !== undefined)!;
    const allowed = `less, as an evaluation has at most ${MAX_EVAL_TASKS} tasks, and not ${count}`;
    yield { path: [...last.path, "seeds", "to"], allowed };
  }
  if (tasks !== undefined && sizes.every((size) => size !== undefined) && count > 0 && tasks > count) {
    yield { path: [...path, "tasks"], allowed: `at most the ${count} tasks of dataset.eval` };
  }
}
