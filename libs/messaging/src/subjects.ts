/**
 * All subjects of the bus. Only this file builds and parses them.
 *
 *   subject  = "hone.v1." noun "." verb { "." key }
 *   key      = one token of letters, digits, "-" and "_", such as a run id or the name of a replica
 *
 *   hone.v1.run.request                            stream RUNS
 *   hone.v1.run.{cancel,pause,resume,status}.<run>  request
 *   hone.v1.run.ledger.<run>                        request
 *   hone.v1.<service>.validate                      request
 *   hone.v1.<service>.health                        request, answered by every process of the service
 *   hone.v1.dataset.batch                           request
 *   hone.v1.rollout.job.<run>                       stream JOBS
 *   hone.v1.rollout.finished.<run>                  stream EPISODES
 *   hone.v1.rollout.scored.<run>                    stream EPISODES
 *   hone.v1.rollout.render                          request
 *   hone.v1.policy.generate.<model>.<replica>       request, streamed reply
 *   hone.v1.policy.abort.<model>.<replica>          message without reply; its body is the request id
 *   hone.v1.judge.score                             request
 *   hone.v1.judge.group                             request
 *   hone.v1.judge.reward.<giver>                    request; <giver> says by whose right a later reward is given
 *   hone.v1.event.<run>.<kind>                      stream EVENTS; <run> is request-<sequence> before a run exists
 *   hone.v1.dead.<stream>                           stream DEAD
 */

import { InvalidInputError } from "@hone/core";

const PREFIX = "hone.v1";
const TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** Services that answer `validate`. */
export const ValidatingService = {
  dataset: "dataset",
  agentRollout: "agent-rollout",
  inferenceGateway: "inference-gateway",
  judge: "judge",
} as const;
export type ValidatingService = (typeof ValidatingService)[keyof typeof ValidatingService];

/** All services. */
export const ServiceName = {
  ...ValidatingService,
  trainer: "trainer",
  tracer: "tracer",
} as const;
export type ServiceName = (typeof ServiceName)[keyof typeof ServiceName];

/** The control requests for a run. */
export const RunControl = { cancel: "cancel", pause: "pause", resume: "resume", status: "status" } as const;
export type RunControl = (typeof RunControl)[keyof typeof RunControl];

/** By whose right a reward is given to a rollout that has ended. */
export const RewardGiver = {
  /** Who holds the key of the rollout's session; only agent-rollout passes such requests on. */
  session: "session",
  /** Programs and people that may control runs. */
  client: "client",
  /** People who hold the token of the web page; only the tracer passes such requests on. */
  page: "page",
} as const;
export type RewardGiver = (typeof RewardGiver)[keyof typeof RewardGiver];

/** The kinds of events, which are the last token of their subjects. */
export const EventKind = {
  accepted: "accepted",
  refused: "refused",
  phase: "phase",
  warmStart: "warm-start",
  progress: "progress",
  step: "step",
  evaluated: "evaluated",
  ended: "ended",
  resumed: "resumed",
  unread: "unread",
} as const;
export type EventKind = (typeof EventKind)[keyof typeof EventKind];

/** Whether a name can be a token of a subject, as run ids and names of replicas must be. */
export function isSubjectToken(value: string): boolean {
  return TOKEN.test(value);
}

function token(value: string): string {
  if (!isSubjectToken(value)) {
    throw new InvalidInputError(
      `"${value}" cannot be part of a subject; give 1 to 128 letters, digits, "-" and "_"`,
      {
        path: "subject",
        allowed: TOKEN.source,
      },
    );
  }
  return value;
}

/** The subjects, by what they are for. In filters `"*"` stands for every key. */
export const subjects = {
  runRequest: () => `${PREFIX}.run.request`,
  runControl: (verb: RunControl, run: string | "*") =>
    `${PREFIX}.run.${verb}.${run === "*" ? run : token(run)}`,
  /** What a run's ledger says of its steps and of trained tokens. */
  runLedger: (run: string | "*") => `${PREFIX}.run.ledger.${run === "*" ? run : token(run)}`,
  validate: (service: ValidatingService) => `${PREFIX}.${service}.validate`,
  serviceHealth: (service: string | "*") => `${PREFIX}.${service === "*" ? service : token(service)}.health`,
  datasetBatch: () => `${PREFIX}.dataset.batch`,
  rolloutJob: (run: string | "*") => `${PREFIX}.rollout.job.${run === "*" ? run : token(run)}`,
  rolloutFinished: (run: string | "*") => `${PREFIX}.rollout.finished.${run === "*" ? run : token(run)}`,
  rolloutScored: (run: string | "*") => `${PREFIX}.rollout.scored.${run === "*" ? run : token(run)}`,
  rolloutRender: () => `${PREFIX}.rollout.render`,
  generate: (model: string | "*", replica: string) =>
    `${PREFIX}.policy.generate.${model === "*" ? model : token(model)}.${token(replica)}`,
  abort: (model: string | "*", replica: string) =>
    `${PREFIX}.policy.abort.${model === "*" ? model : token(model)}.${token(replica)}`,
  judgeScore: () => `${PREFIX}.judge.score`,
  judgeGroup: () => `${PREFIX}.judge.group`,
  judgeReward: (giver: RewardGiver) => `${PREFIX}.judge.reward.${giver}`,
  /** Everything of one run in EPISODES. */
  episodes: (run: string) => `${PREFIX}.rollout.*.${token(run)}`,
  /**
   * All messages of one run in EPISODES, or in JOBS, for purging. These subjects lie within no consumer's filter, as in servers
   * before 2.9.15 a consumer whose filter covers a purged subject loses its state: it forgets what it delivered and skips
   * messages, also of other runs.
   */
  finishedToPurge: (run: string) => `${PREFIX}.*.finished.${token(run)}`,
  scoredToPurge: (run: string) => `${PREFIX}.*.scored.${token(run)}`,
  jobsToPurge: (run: string) => `${PREFIX}.*.job.${token(run)}`,
  event: (run: string | "*", kind: EventKind | "*") =>
    `${PREFIX}.event.${run === "*" ? run : token(run)}.${kind}`,
  requestRefused: (requestSequence: number) =>
    `${PREFIX}.event.request-${requestSequence}.${EventKind.refused}`,
  dead: (stream: string) => `${PREFIX}.dead.${token(stream)}`,
} as const;

/**
 * @returns the last token of a subject: the run of a job, an episode or a control request, the replica of a generate request.
 * @throws {InvalidInputError} when the subject is not one of Hone's.
 */
export function lastKeyOf(subject: string): string {
  const parts = subject.split(".");
  const key = parts.at(-1);
  if (parts.length < 5 || parts[0] !== "hone" || parts[1] !== "v1" || key === undefined) {
    throw new InvalidInputError(
      `"${subject}" is not a subject of Hone; they have the form ${PREFIX}.<noun>.<verb>.<key>`,
      {
        path: "subject",
        allowed: `${PREFIX}.<noun>.<verb>.<key>`,
      },
    );
  }
  return key;
}

/** @returns the run in an event's subject. */
export function runOfEvent(subject: string): string {
  lastKeyOf(subject);
  return subject.split(".")[3]!;
}

/** @returns the model in a generate or abort subject. */
export function modelOfSubject(subject: string): string {
  lastKeyOf(subject);
  return subject.split(".")[4]!;
}
