/**
 * The moments at which a process is killed, in the order in which a run reaches them.
 *
 * A moment is a place where a process stops: before or after the last action of its path. The actions on a path are those that
 * are reported to the gate: `publish <subject> id=<message id> <payload>`, `query <sql>`, `rename <from> <to>`, and `post
 * <texts of a message between threads>`. All moments but the first and the last are in step 2 of 3.
 */

import type { ArmedMoment } from "./seams/moment-gate.ts";

/** The run that is disturbed. Every step trains two minibatches for two epochs, so four updates make a version. */
export const RUN = { steps: 3, tasksPerStep: 8, minibatches: 2, warmStartTasks: 100, evalTasks: 10 };
const GROUP_SIZE = 8;
const STEP_ROLLOUTS = RUN.tasksPerStep * GROUP_SIZE;
/** Each held-out task is played sampled and greedily. */
const EVAL_ROLLOUTS = RUN.evalTasks * 2;
/** Rollouts of all kinds; the first and the last version are evaluated. */
export const RUN_ROLLOUTS = RUN.warmStartTasks + RUN.steps * STEP_ROLLOUTS + 2 * EVAL_ROLLOUTS;

/** The state of bus, database and files while a process is stopped. */
export interface Situation {
  /** Number of requests that are not acknowledged. */
  readonly requests: number;
  /** Last committed version. */
  readonly committed: number | null | undefined;
  /** Version that RUN_STATE shows. */
  readonly published: number | undefined;
  /** Newest version that the gateway can generate with. */
  readonly loaded: number | undefined;
  /** Names in the folder of the run's states. */
  readonly states: readonly string[];
}

export interface Moment extends Omit<ArmedMoment, "id"> {
  readonly title: string;
  /** Whether the situation is that of this moment. */
  readonly isNow: (situation: Situation) => boolean;
}

const publish = (subject: string, rest = "") => `^publish hone\\.v1\\.${subject}\\.\\S+ id=${rest}`;
const acknowledge = (stream: string) => `^publish \\$JS\\.ACK\\.${stream}\\..* \\+ACK$`;
const job = publish("rollout.job", "\\S+/train\\.2\\.");
const finished = publish("rollout.finished", "\\S+/train\\.2\\.");
const scored = publish("rollout.scored", "\\S+/train\\.2\\.");
const once = (pattern: string) => ({ pattern, times: 1 });
const allJobs = { pattern: job, times: STEP_ROLLOUTS };
const renamed = once("^rename .*/state/\\.new-2-\\d+ ");
const ledgerRows = once("^query insert into ledger");
const isMakingVersion2 = ({ committed, published }: Situation) => committed === 1 && published === 1;

export const MOMENTS = {
  accepted: {
    title: "run accepted, request not acknowledged",
    service: "trainer",
    path: [once(acknowledge("RUNS"))],
    stop: "before",
    // The request of an earlier run, whose trainer died, may still be there.
    isNow: ({ committed, requests }) => committed === null && requests >= 1,
  },
  "jobs-half-published": {
    title: "half of a step's jobs published",
    service: "trainer",
    path: [{ pattern: job, times: STEP_ROLLOUTS / 2 }],
    stop: "after",
    isNow: isMakingVersion2,
  },
  "rollouts-half-done": {
    title: "half of a step's episodes sent",
    service: "agent-rollout",
    path: [{ pattern: finished, times: STEP_ROLLOUTS / 2 }],
    stop: "after",
    isNow: isMakingVersion2,
  },
  "episode-stored": {
    title: "episode stored, job not acknowledged",
    service: "agent-rollout",
    path: [{ pattern: finished, times: STEP_ROLLOUTS / 2 }, once(acknowledge("JOBS"))],
    stop: "before",
    isNow: isMakingVersion2,
  },
  "episodes-half-judged": {
    title: "half of a step's scored episodes sent, another one judged",
    service: "judge",
    path: [{ pattern: scored, times: STEP_ROLLOUTS / 2 + 1 }],
    stop: "before",
    isNow: isMakingVersion2,
  },
  "episode-judged": {
    title: "scored episode stored, episode not acknowledged",
    service: "judge",
    path: [{ pattern: scored, times: STEP_ROLLOUTS / 2 }, once(acknowledge("EPISODES"))],
    stop: "before",
    isNow: isMakingVersion2,
  },
  "batch-complete": {
    title: "batch complete, training not begun",
    service: "trainer",
    path: [allJobs, once("^post call trainMinibatch")],
    stop: "before",
    isNow: isMakingVersion2,
  },
  "optimizer-update": {
    title: "two of four optimizer updates made",
    service: "trainer",
    path: [allJobs, { pattern: "^post result", times: 2 }],
    stop: "before",
    isNow: isMakingVersion2,
  },
  "state-written": {
    title: "state written, not renamed",
    service: "trainer",
    path: [renamed],
    stop: "before",
    isNow: (situation) => isMakingVersion2(situation) && situation.states.includes(".new-2-1"),
  },
  "state-renamed": {
    title: "state renamed, not committed",
    service: "trainer",
    path: [renamed, ledgerRows, once("^query commit")],
    stop: "before",
    isNow: (situation) => isMakingVersion2(situation) && situation.states.includes("2-1"),
  },
  "commit-unanswered": {
    title: "committed, the answer not read",
    service: "trainer",
    path: [renamed, ledgerRows, once("^query commit")],
    stop: "after",
    isNow: ({ committed, published }) => committed === 2 && published === 1,
  },
  committed: {
    title: "committed, RUN_STATE not moved",
    service: "trainer",
    path: [renamed, ledgerRows, once("^query commit"), once("^publish \\$KV\\.RUN_STATE\\.")],
    stop: "before",
    isNow: ({ committed, published }) => committed === 2 && published === 1,
  },
  published: {
    title: "version published, no gateway has it",
    service: "inference-gateway",
    path: [once("^post load .*/state/2-")],
    stop: "before",
    isNow: ({ published, loaded }) => published === 2 && loaded === 1,
  },
  evaluation: {
    title: "half of the last evaluation done",
    service: "agent-rollout",
    path: [{ pattern: publish("rollout.finished", `\\S+/eval\\.${RUN.steps}\\.`), times: EVAL_ROLLOUTS / 2 }],
    stop: "after",
    isNow: ({ committed, published }) => committed === RUN.steps && published === RUN.steps,
  },
} as const satisfies Readonly<Record<string, Moment>>;

/** Moments that only a run with dynamic sampling reaches, so the matrix does not have them. */
export const SAMPLING_MOMENTS = {
  "second-batch": {
    title: "first job of a step's second batch published",
    service: "trainer",
    path: [{ pattern: job, times: STEP_ROLLOUTS + 1 }],
    stop: "after",
    isNow: isMakingVersion2,
  },
} as const satisfies Readonly<Record<string, Moment>>;

export type MomentName = keyof typeof MOMENTS;
export type SamplingMomentName = keyof typeof SAMPLING_MOMENTS;
export const MOMENT_NAMES = Object.keys(MOMENTS) as MomentName[];

/** The processes that can be killed. */
export const VICTIMS = [
  "dataset",
  "agent-rollout",
  "inference-gateway",
  "judge",
  "trainer",
  "tracer",
  "nats-server",
  "postgres",
  "supervisor",
] as const;
export type Victim = (typeof VICTIMS)[number];

/** The cases of `npm test`: each victim at another moment; the supervisor last, as it ends all others. */
export const QUICK_CASES: readonly (readonly [Victim, MomentName])[] = [
  ["dataset", "accepted"],
  ["agent-rollout", "rollouts-half-done"],
  ["inference-gateway", "published"],
  ["judge", "episode-judged"],
  ["trainer", "state-renamed"],
  ["trainer", "optimizer-update"],
  ["tracer", "evaluation"],
  ["nats-server", "jobs-half-published"],
  ["postgres", "commit-unanswered"],
  ["supervisor", "batch-complete"],
];
