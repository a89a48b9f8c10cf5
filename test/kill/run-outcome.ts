/** Reads the outcome of a run from the database, the state folder and the bus. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { deadline } from "@hone/core";
import { BucketName, openBucket, readOrdered, StreamName, subjects } from "@hone/messaging";
import { type RunEvent, RunEventSchema, RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import type { TestStack } from "../support/stack.ts";

/** One trained rollout, without the columns that another attempt may change. */
interface TrainedRollout {
  readonly slot: string;
  readonly version: number;
  readonly outcome: string;
  readonly reward: number;
  readonly advantage: number;
  readonly sample_count: number;
  readonly sampled_tokens: number;
}

interface CommittedVersion {
  readonly version: number;
  readonly state_digest: string;
}

interface RecordedEvaluation {
  readonly version: number;
  readonly mode: string;
  readonly episodes: number;
  readonly metrics: Readonly<Record<string, number>>;
}

export interface RunOutcome {
  readonly stage: string;
  readonly version: number;
  readonly rollouts: readonly TrainedRollout[];
  readonly chain: readonly CommittedVersion[];
  readonly evaluations: readonly RecordedEvaluation[];
  /** SHA-256 of each file of the last state: weights, optimizer and their companions. */
  readonly state: Readonly<Record<string, string>>;
  /** SHA-256 of each file of the last checkpoint. */
  readonly checkpoint: Readonly<Record<string, string>>;
  readonly published: { readonly isCompleted: boolean; readonly version: number; readonly digest: string };
  /** Its events as short texts such as "step 2", repeated if they were published repeatedly. */
  readonly events: readonly string[];
}

const EVENTS_DEADLINE_MS = 20_000;

/** Reads the outcome of a run that has ended. */
export async function readOutcome({ bus, sql, stateFolder }: TestStack, runId: string): Promise<RunOutcome> {
  const [run] = await sql<{ stage: string; version: number; state_folder: string; steps: number }[]>`
    select stage, version, state_folder from trainer.runs where run_id = ${runId}`;
  if (run === undefined) throw new Error(`no run ${runId}`);
  const rollouts = await sql<TrainedRollout[]>`
    select slot, version, outcome, reward, advantage, sample_count, sampled_tokens
    from trainer.ledger where run_id = ${runId} order by slot`;
  const chain = await sql<CommittedVersion[]>`
    select version, state_digest from trainer.steps where run_id = ${runId} order by version`;
  const evaluations = await sql<RecordedEvaluation[]>`
    select version, mode, episodes, metrics from trainer.evaluations where run_id = ${runId} order by version, mode`;
  const states = await openBucket(bus, BucketName.runState, RunStateSchema);
  const published = (await states.get(runId))?.value;
  const checkpoint = path.join(stateFolder, "runs", runId, "checkpoints", `step-${run.version}`);
  return {
    stage: run.stage,
    version: run.version,
    rollouts: [...rollouts],
    chain: [...chain],
    evaluations: [...evaluations],
    state: digestsIn(path.join(stateFolder, run.state_folder)),
    checkpoint: digestsIn(checkpoint),
    published: {
      isCompleted: published?.phase === RunPhase.COMPLETED,
      version: published?.version ?? -1,
      digest: published?.digest ?? "",
    },
    events: await eventsOf(bus, runId),
  };
}

function digestsIn(folder: string): Record<string, string> {
  const digest = (name: string) =>
    createHash("sha256")
      .update(readFileSync(path.join(folder, name)))
      .digest("hex");
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map((name) => [name, digest(name)]),
  );
}

/** All events up to the run's end, without those of progress, sorted. */
function eventsOf(bus: TestStack["bus"], runId: string): Promise<string[]> {
  return deadline(`the events of ${runId}`, EVENTS_DEADLINE_MS, async (signal) => {
    const events: string[] = [];
    const filter = subjects.event(runId, "*");
    for await (const { message } of readOrdered(bus, RunEventSchema, {
      stream: StreamName.events,
      filter,
      signal,
    })) {
      const text = textOf(message);
      if (text !== undefined) events.push(text);
      if (message.kind.case === "ended") break;
    }
    return events.sort();
  });
}

function textOf({ kind }: RunEvent): string | undefined {
  if (kind.case === "accepted") return "accepted";
  if (kind.case === "stepCompleted") return `step ${kind.value.step}`;
  if (kind.case === "evaluated") return `evaluated ${kind.value.version} ${kind.value.mode}`;
  if (kind.case === "ended") return `ended ${kind.value.phase} ${kind.value.reason}`;
  return undefined;
}
