/**
 * Whose turn it is when scored rollouts do not come: from what the bus knows of the way between job and score.
 *
 * H1: a service that does not answer and has work of this kind is named before one that is merely busy.
 * H2: work is looked at in the order of its way: jobs, the policy that they need, episodes to score.
 * H3: there is always an answer: where nothing is under way any more, it is the trainer's turn to publish again.
 * H4: a full stream of episodes is people's turn only where nothing in it could be dropped: this run alone is in it, with
 *     nothing but what is waited for.
 */

import { type Wait, WaitOwner } from "../report/wait.ts";
import type { EpisodeRoom } from "./scored-rollout.ts";

/** What one look at the bus tells. */
export type PipelineView =
  | { readonly kind: "bus_silent" }
  | {
      readonly kind: "seen";
      /** Services of which no process answers. */
      readonly silent: readonly string[];
      /** Jobs of this run that are not done. */
      readonly jobs: number;
      /** Jobs of all runs that nobody has taken, and that agent-rollout works on. */
      readonly jobsPending: number;
      readonly jobsInWork: number;
      /** Finished episodes of all runs that are not scored. */
      readonly unscored: number;
      /** Where it is full, who has an episode to store holds it. */
      readonly episodes: EpisodeRoom;
      /** Replicas of this run's policy. */
      readonly replicas: readonly ReplicaView[];
    };

export interface ReplicaView {
  readonly name: string;
  readonly versions: readonly number[];
  /** What it does beside serving; empty = nothing. */
  readonly activity: string;
}

/** What is waited for. */
export interface MissingRollouts {
  /** Such as "step 3". */
  readonly what: string;
  readonly missing: number;
  readonly total: number;
  /** Jobs that are not in the queue yet. */
  readonly unpublished: number;
  /** Policy version that its jobs need; undefined where a script acts in the policy's place. */
  readonly version: number | undefined;
  readonly runId: string;
  /** First position of the stream of episodes that the run still needs. */
  readonly neededFrom: number;
  /** Whether that is for steps that a restart would replay, beside what is waited for. */
  readonly keepsSteps: boolean;
}

/** @returns what the run waits for, without the time since when. */
export function findHoldup(wanted: MissingRollouts, view: PipelineView): Pick<Wait, "text" | "owner"> {
  const rollouts = `${wanted.missing} of ${wanted.total} rollouts of ${wanted.what}`;
  if (view.kind === "bus_silent") {
    return { text: `${rollouts}: the bus does not answer`, owner: WaitOwner.bus };
  }
  const { jobsPending, jobsInWork, unscored } = view;
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
    return { text: `${rollouts}: ${taken}`, owner: WaitOwner.agentRollout };
  }
  if (unscored > 0) {
    return { text: `${rollouts}: judge has not scored ${unscored} episodes`, owner: WaitOwner.judge };
  }
  return { text: `${rollouts}: no job is left, the trainer publishes again`, owner: WaitOwner.trainer }; // H3
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

/** Why nobody serves the version; empty where somebody does. */
function replicasBehind(version: number, replicas: readonly ReplicaView[]): string {
  if (replicas.length === 0) return `no replica of inference-gateway serves version ${version}`;
  if (replicas.some(({ versions }) => versions.includes(version))) return "";
  const said = replicas.map(
    ({ name, versions, activity }) =>
      `${name} has ${versions.join(", ") || "none"}${activity === "" ? "" : ` and is ${activity}`}`,
  );
  return `inference-gateway is behind version ${version}: ${said.join("; ")}`;
}

/** The way of rollouts from the job to the scored episode, seen from outside. */
export interface Pipeline {
  /** Settles within seconds. */
  look(runId: string, signal: AbortSignal): Promise<PipelineView>;
}
