/**
 * Finds out why no scored rollouts arrive and who must act, from what the message bus knows about jobs and episodes.
 *
 * H1: A service that has work to do and does not answer is named before a service that is only busy.
 * H2: The stages are checked in the order in which a rollout passes them: its job, the policy version that it needs, the
 *     scoring of its episode.
 * H3: There is always an answer: when no stage has anything to do, the trainer must publish the jobs again.
 * H4: When the stream of episodes is full, the user must act only if none of its episodes can be dropped: they all belong to
 *     this run, and the run still needs all of them.
 * H5: Rollouts that have ended and wait for rewards are nobody's work but that of the people or programs that give them.
 */

import { type Wait, WaitOwner } from "../report/wait.ts";
import type { EpisodeRoom } from "./scored-rollout.ts";

/** The state of the bus at one moment. */
export type PipelineView =
  | { readonly kind: "bus_silent" }
  | {
      readonly kind: "seen";
      /** Services that have no process that answers. */
      readonly silent: readonly string[];
      /** Number of this run's jobs that are not done. */
      readonly jobs: number;
      /** Number of jobs, of all runs, that agent-rollout has not taken yet, and that it works on. */
      readonly jobsPending: number;
      readonly jobsInWork: number;
      /** Number of finished episodes, of all runs, that are not scored. */
      readonly unscored: number;
      /** The stream of episodes. While it is full, agent-rollout and the judge keep the episodes that they have to store. */
      readonly episodes: EpisodeRoom;
      /** Replicas of inference-gateway that serve this run's policy. */
      readonly replicas: readonly ReplicaView[];
      /** Rollouts of this run that have ended and wait for rewards. */
      readonly open: readonly OpenRollout[];
    };

/** A rollout that waits for rewards. */
export interface OpenRollout {
  /** Key of its slot. */
  readonly slot: string;
  /** Since when: Unix milliseconds. */
  readonly sinceMs: number;
}

export interface ReplicaView {
  readonly name: string;
  readonly versions: readonly number[];
  /** What the replica does apart from serving; empty = nothing. */
  readonly activity: string;
}

/** The rollouts that the run waits for. */
export interface MissingRollouts {
  /** Those of the missing ones that wait for rewards. */
  readonly open: readonly OpenRollout[];
  /** What needs the rollouts, such as "step 3". */
  readonly what: string;
  readonly missing: number;
  readonly total: number;
  /** Number of jobs that are not in the queue yet. */
  readonly unpublished: number;
  /** Policy version that the jobs need; undefined if a script acts instead of the policy. */
  readonly version: number | undefined;
  readonly runId: string;
  /** First position of the stream of episodes that the run still needs. */
  readonly neededFrom: number;
  /** Whether some of the needed episodes belong to steps that a restart would replay. */
  readonly keepsSteps: boolean;
}

/** @returns what the run waits for and who must act; the caller adds since when. */
export function findCauseOfWait(wanted: MissingRollouts, view: PipelineView): Pick<Wait, "text" | "owner"> {
  const rollouts = `${wanted.missing} of ${wanted.total} rollouts of ${wanted.what}`;
  if (view.kind === "bus_silent") {
    return { text: `${rollouts}: the bus does not answer`, owner: WaitOwner.bus };
  }
  const { jobsPending, jobsInWork, unscored } = view;
  const open = openText(wanted.open);
  const others = open === "" ? "" : `; ${open}`;
  const jobs = view.jobs + wanted.unpublished;
  const silent = [
    ...(jobs > 0 ? [WaitOwner.agentRollout] : []),
    ...(jobs > 0 && wanted.version !== undefined ? [WaitOwner.inferenceGateway] : []),
    ...(unscored > 0 ? [WaitOwner.judge] : []),
  ].filter((owner) => view.silent.includes(owner));
  const [first] = silent;
  if (first !== undefined) {
    const verb = silent.length === 1 ? "does" : "do";
    return { text: `${rollouts}: ${silent.join(", ")} ${verb} not answer`, owner: first }; // H1
  }
  if (view.episodes.isFull) return fullStream(rollouts, wanted, view.episodes); // H4
  if (jobs > 0) {
    const behind = wanted.version === undefined ? "" : replicasBehind(wanted.version, view.replicas);
    if (behind !== "") return { text: `${rollouts}: ${behind}`, owner: WaitOwner.inferenceGateway };
    const taken =
      jobsPending === 0
        ? `agent-rollout works on ${jobsInWork}`
        : `agent-rollout works on ${jobsInWork} and has not taken ${jobsPending}`;
    return { text: `${rollouts}: ${taken}${others}`, owner: WaitOwner.agentRollout };
  }
  if (unscored > 0) {
    const text = `${rollouts}: judge has not scored ${unscored} episodes${others}`;
    return { text, owner: WaitOwner.judge };
  }
  if (open !== "") return { text: `${rollouts}: ${open}`, owner: WaitOwner.you }; // H5
  return { text: `${rollouts}: no job is left, the trainer publishes again`, owner: WaitOwner.trainer }; // H3
}

/** H5; empty if no rollout waits for rewards. */
function openText(open: readonly OpenRollout[]): string {
  if (open.length === 0) return "";
  const since = new Date(Math.min(...open.map(({ sinceMs }) => sinceMs)));
  const count = open.length === 1 ? "1 waits" : `${open.length} wait`;
  return `${count} for rewards, the oldest since ${since.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** H4 */
function fullStream(
  rollouts: string,
  { runId, neededFrom, keepsSteps }: MissingRollouts,
  { bytes, maxBytes = bytes, firstSequence, runs }: EpisodeRoom,
): Pick<Wait, "text" | "owner"> {
  const full = `${rollouts}: EPISODES is full (it holds ${bytes} bytes of at most ${maxBytes})`;
  const held = "agent-rollout and judge hold what they have until episodes are dropped";
  const isAlone = runs.every((run) => run === runId);
  if (isAlone && !keepsSteps && firstSequence >= neededFrom) {
    const remedy = `start the trainer with HONE_EPISODES_MAX_BYTES above ${maxBytes}, and the run goes on by itself`;
    return { text: `${full} and has no room for all of these at once; ${remedy}`, owner: WaitOwner.you };
  }
  const others = isAlone ? "" : `, of ${runs.length} runs`;
  return { text: `${full}${others}; ${held}`, owner: WaitOwner.bus };
}

/** @returns why no replica serves the version; empty if one does. */
function replicasBehind(version: number, replicas: readonly ReplicaView[]): string {
  if (replicas.length === 0) return `no replica of inference-gateway serves version ${version}`;
  if (replicas.some(({ versions }) => versions.includes(version))) return "";
  const said = replicas.map(
    ({ name, versions, activity }) =>
      `${name} has ${versions.join(", ") || "none"}${activity === "" ? "" : ` and is ${activity}`}`,
  );
  return `inference-gateway is behind version ${version}: ${said.join("; ")}`;
}

/** Observes the rollouts between their job and their scored episode. */
export interface Pipeline {
  /** Settles within a few seconds. */
  look(runId: string, signal: AbortSignal): Promise<PipelineView>;
}
