/**
 * Keeps the groups that a run plays (`trainer.keepRollouts`), and gives them to a run that trains them again (`replay.run`).
 *
 * K1: a step's rollouts are on the disk before it is trained, so every committed step has them.
 * K2: where several owners of a run played a step, the one with the highest epoch committed it: once a step is committed, no
 *     later owner plays it.
 * K3: a replay trains the groups that the recorded step trained, in the same order, with the tokens, logprobs and scores of
 *     then. Everything else is as in any run: with the same settings it makes the same weights bit for bit.
 */

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { type RunConfig, startVersion } from "@hone/config";
import { describeError, type Slot, slotKey } from "@hone/core";
import { BrokenKeptStepError, LostRolloutsError } from "../errors.ts";
import { publicConfigJson, readPublicConfig } from "../report/status-of.ts";
import { reportTroubles } from "../report/troubles.ts";
import { diskWait } from "../report/wait.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { RunContext } from "../run/run-context.ts";
import type { RunFolders } from "../state/run-folders.ts";
import { leaveOutUntrainable } from "../step/trainable.ts";
import { type KeptStep, readKeptStep, writeKeptStep } from "./kept-step.ts";
import { type PlayedGroups, rolloutsOf, type StepGroup } from "./played-groups.ts";

const FILE = "step.json.gz";
/** The run file, from which `hone replay` makes the one of the replay. */
const RUN_FILE = "run.json";

type RecallContext = Pick<RunContext, "run" | "folders" | "reporter" | "engine" | "logger">;

/** Keeps the groups of a step where the run file asks for it, waiting until the disk takes them (K1). */
export async function keepGroups(
  { run, folders, reporter }: Pick<RunContext, "run" | "folders" | "reporter">,
  step: number,
  groups: PlayedGroups,
): Promise<void> {
  if (!run.config.trainer.keepRollouts) return;
  const folder = folders.rollouts(step, run.epoch);
  const bytes = await writeKeptStep(groups);
  await reporter.untilAvailable(diskWait(folder), () =>
    folders.writeWhole(folder, async (unfinished) => {
      await writeFile(path.join(unfinished, FILE), bytes);
      await writeFile(path.join(unfinished, RUN_FILE), publicConfigJson(run, folders));
    }),
  );
}

/** The groups of a step of the run that is replayed (K3). @throws {BrokenKeptStepError | LostRolloutsError} */
export async function recallGroups(context: RecallContext, step: number): Promise<PlayedGroups> {
  const { asynchronous, ...kept } = await readStep(context, step);
  const usable = new Map(
    kept.played.map((group): [StepGroup, StepGroup] => [
      group,
      { ...group, rollouts: leaveOutUntrainable(context, group.rollouts) },
    ]),
  );
  const played = [...usable.values()];
  return {
    ...kept,
    played,
    trained: kept.trained.map((group) => usable.get(group)!),
    troubles: reportTroubles(context, `step ${step}`, rolloutsOf(played)),
    ...(asynchronous !== undefined && { asynchronous: { ...asynchronous, taken: [] } }),
  };
}

/** Rollouts of a step of the run that is replayed, in the order of the slots. @throws {BrokenKeptStepError | LostRolloutsError} */
export async function recallRollouts(
  context: RecallContext,
  step: number,
  slots: readonly Slot[],
): Promise<ScoredRollout[]> {
  const { played } = await readStep(context, step);
  const bySlot = new Map(rolloutsOf(played).map((rollout) => [slotKey(rollout.slot), rollout]));
  const found = slots.flatMap((slot) => bySlot.get(slotKey(slot)) ?? []);
  if (found.length < slots.length) {
    throw new LostRolloutsError(`step ${step}`, slots.length - found.length, slots.length);
  }
  return found;
}

/** The run file of the run that is replayed. @throws {BrokenKeptStepError | LostRolloutsError} */
export async function recallRunFile({
  run,
  folders,
  reporter,
}: Pick<RunContext, "run" | "folders" | "reporter">): Promise<RunConfig> {
  const recorded = folders.ofRun(run.config.replay!.run);
  const step = startVersion(run.config) + 1;
  return reporter.untilAvailable(diskWait(recorded.allRollouts), () => readRunFile(recorded, step));
}

/** The run file that lies beside the rollouts of a step. @throws {BrokenKeptStepError | LostRolloutsError} */
export async function readRunFile(recorded: RunFolders, step: number): Promise<RunConfig> {
  const folder = await folderOf(recorded, step);
  const file = path.join(recorded.absolute(folder), RUN_FILE);
  return recorded.using(folder, async () => {
    try {
      return readPublicConfig(await readFile(file, "utf8"));
    } catch (error) {
      throw new BrokenKeptStepError(file, describeError(error), { cause: error });
    }
  });
}

async function readStep(
  { run, folders, reporter }: Pick<RunContext, "run" | "folders" | "reporter">,
  step: number,
): Promise<KeptStep> {
  const recorded = folders.ofRun(run.config.replay!.run);
  return reporter.untilAvailable(diskWait(recorded.allRollouts), async () => {
    const folder = await folderOf(recorded, step);
    const file = path.join(recorded.absolute(folder), FILE);
    return readKeptStep(await recorded.using(folder, () => readFile(file)), file);
  });
}

async function folderOf(recorded: RunFolders, step: number): Promise<string> {
  const folder = (await recorded.keptSteps()).get(step);
  if (folder === undefined) throw new LostRolloutsError(`step ${step}`, 1, 1);
  return folder;
}
