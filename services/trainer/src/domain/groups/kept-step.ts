/**
 * The rollouts of a step as they are kept on the disk: a file of JSON, compressed with gzip, so that people can read it
 * (`zcat step.json.gz | jq`).
 *
 * It holds what a step took from playing its groups: their rollouts with the tokens, their logprobs and the judges' scores, and
 * which groups it trained. Numbers are written so that they are read as the same bits.
 */

import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { describeError, Outcome, Split } from "@hone/core";
import { checkSample } from "@hone/rl";
import { ROOT_CONTEXT } from "@hone/telemetry";
import { z } from "zod";
import { BrokenKeptStepError } from "../errors.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { PlayedGroups, StepGroup } from "./played-groups.ts";

/** What playing the groups of a step gave, but for what a reader counts again. */
export type KeptStep = Omit<PlayedGroups, "troubles" | "asynchronous"> & {
  readonly asynchronous?: Omit<NonNullable<PlayedGroups["asynchronous"]>, "taken">;
};

/** A step of a thousand long rollouts; a damaged file must not take all memory. */
const MAX_BYTES = 2 ** 31;

const count = z.int().min(0);
const numbers = z.record(z.string(), z.number());

const rolloutSchema = z.strictObject({
  slot: z.strictObject({ split: z.enum(Split), step: count, task: count, index: count }),
  attempt: z.int().min(1),
  outcome: z.enum(Outcome),
  reason: z.string().optional(),
  toolUses: z
    .array(z.strictObject({ name: z.string(), calls: count, failed: count, error: z.string() }))
    .optional(),
  scores: z.array(
    z.strictObject({
      judge: z.string(),
      weight: z.number(),
      value: z.number(),
      metrics: numbers.optional(),
      turnRewards: z.array(z.strictObject({ turn: count, value: z.number() })).optional(),
      roles: z.array(z.string()).optional(),
      roleValues: numbers.optional(),
    }),
  ),
  samples: z.array(
    z.strictObject({
      tokenIds: z.array(count),
      lossMask: z.array(count),
      logprobs: z.array(z.number()),
      versions: z.array(z.strictObject({ version: count, tokenCount: count })),
      role: z.string().optional(),
    }),
  ),
  metrics: numbers,
  turnCount: count,
  turns: z
    .array(z.strictObject({ sample: count, begin: count, end: count, state: z.string().optional() }))
    .optional(),
  sequence: count,
});

const stepSchema = z.strictObject({
  groups: z.array(
    z.strictObject({
      task: count,
      isTrained: z.boolean(),
      rollouts: z.array(rolloutSchema),
      baseline: rolloutSchema.optional(),
    }),
  ),
  tasks: z.array(
    z.strictObject({
      id: z.string(),
      environment: z.string(),
      environmentSeed: z.string().regex(/^-?\d+$/),
      environmentConfigJson: z.string(),
      rowJson: z.string(),
      // Absent in the files of earlier releases.
      part: z.string().default(""),
    }),
  ),
  surplusCount: count,
  unneededCount: count,
  batchCount: count,
  nextCursor: count,
  numPassedOver: count,
  asynchronous: z
    .strictObject({
      tooOldCount: count,
      openCount: count,
      // Absent in the files of earlier releases.
      waitingCount: count.default(0),
      aheadCount: count.default(0),
    })
    .optional(),
});

type StepJson = z.input<typeof stepSchema>;
type RolloutJson = z.input<typeof rolloutSchema>;

/** @returns the bytes of the file. */
export function writeKeptStep(groups: KeptStep): Promise<Buffer> {
  const trained = new Set(groups.trained);
  const { surplusCount, unneededCount, batchCount, nextCursor, numPassedOver, asynchronous } = groups;
  const step: StepJson = {
    groups: groups.played.map((group) => ({
      task: group.task,
      isTrained: trained.has(group),
      rollouts: group.rollouts.map(toJson),
      ...(group.baseline !== undefined && { baseline: toJson(group.baseline) }),
    })),
    tasks: groups.tasks.map(({ id, environment, environmentSeed, environmentConfigJson, rowJson, part }) => ({
      id,
      environment,
      environmentSeed: String(environmentSeed),
      environmentConfigJson,
      rowJson,
      part,
    })),
    surplusCount,
    unneededCount,
    batchCount,
    nextCursor,
    numPassedOver,
    ...(asynchronous !== undefined && {
      asynchronous: {
        tooOldCount: asynchronous.tooOldCount,
        openCount: asynchronous.openCount,
        waitingCount: asynchronous.waitingCount,
        aheadCount: asynchronous.aheadCount,
      },
    }),
  };
  return promisify(gzip)(JSON.stringify(step));
}

/** @param file names it in errors. @throws {BrokenKeptStepError} where the bytes are not what {@link writeKeptStep} wrote. */
export async function readKeptStep(bytes: Uint8Array, file: string): Promise<KeptStep> {
  try {
    const text = await promisify(gunzip)(bytes, { maxOutputLength: MAX_BYTES });
    return fromJson(stepSchema.parse(JSON.parse(text.toString())));
  } catch (error) {
    throw new BrokenKeptStepError(file, describeError(error), { cause: error });
  }
}

function fromJson({ groups, tasks, asynchronous, ...counts }: z.output<typeof stepSchema>): KeptStep {
  const read = groups.map(({ task, rollouts, baseline, isTrained }) => {
    const group: StepGroup = {
      task,
      rollouts: rollouts.map(rolloutOf),
      ...(baseline !== undefined && { baseline: rolloutOf(baseline) }),
    };
    return { group, isTrained };
  });
  return {
    ...counts,
    ...(asynchronous !== undefined && { asynchronous }),
    played: read.map(({ group }) => group),
    trained: read.filter(({ isTrained }) => isTrained).map(({ group }) => group),
    tasks: tasks.map((task) => ({ ...task, environmentSeed: BigInt(task.environmentSeed) })),
  };
}

/** Without what belongs to the stream that it came from, to its trace and to its clock. */
function toJson({
  bytes: _,
  resumption: _of,
  trace: _in,
  durationMs: _took,
  samples,
  ...rollout
}: ScoredRollout): RolloutJson {
  return {
    ...rollout,
    scores: rollout.scores.map(({ metrics, turnRewards, roles, roleValues, ...score }) => ({
      ...score,
      ...(roles !== undefined && { roles: [...roles] }),
      ...(roleValues !== undefined && { roleValues: { ...roleValues } }),
      ...(metrics !== undefined && { metrics: { ...metrics } }),
      ...(turnRewards !== undefined && { turnRewards: turnRewards.map((each) => ({ ...each })) }),
    })),
    toolUses: rollout.toolUses?.map((each) => ({ ...each })),
    turns: rollout.turns?.map((each) => ({ ...each })),
    samples: samples.map(({ tokenIds, lossMask, logprobs, versions, role }) => ({
      ...(role !== undefined && { role }),
      tokenIds: Array.from(tokenIds),
      lossMask: Array.from(lossMask),
      logprobs: Array.from(logprobs),
      versions: versions.map((each) => ({ ...each })),
    })),
  };
}

function rolloutOf({ samples, ...rollout }: z.output<typeof rolloutSchema>): ScoredRollout {
  const read = samples.map(({ tokenIds, lossMask, logprobs, versions, role }) => ({
    ...(role !== undefined && { role }),
    tokenIds: Uint32Array.from(tokenIds),
    lossMask: Uint8Array.from(lossMask),
    logprobs: Float32Array.from(logprobs),
    versions,
  }));
  read.forEach((sample, i) => {
    checkSample(sample, `sample ${i} of a rollout`);
  });
  const place = { bytes: 0, resumption: 0, durationMs: 0, trace: ROOT_CONTEXT };
  return { ...rollout, samples: read, ...place } as ScoredRollout;
}
