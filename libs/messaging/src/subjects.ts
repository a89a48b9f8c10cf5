/**
 * Every subject of the bus, built and parsed here.
 *
 *   subject  = "hone.v1." noun "." verb { "." key }
 *   key      = one token: letters, digits, "-" and "_"; run ids and replica names are such tokens
 *
 *   hone.v1.run.request                            stream RUNS
 *   hone.v1.run.{cancel,pause,resume,status}.<run>  request
 *   hone.v1.<service>.validate                      request
 *   hone.v1.<service>.health                        request, answered by every process of the service
 *   hone.v1.dataset.batch                           request
 *   hone.v1.rollout.job.<run>                       stream JOBS
 *   hone.v1.rollout.finished.<run>                  stream EPISODES
 *   hone.v1.rollout.scored.<run>                    stream EPISODES
 *   hone.v1.policy.generate.<model>.<replica>       request, streamed reply
 *   hone.v1.policy.abort.<model>.<replica>          message without reply; its body is the request id
 *   hone.v1.judge.score                             request
 *   hone.v1.judge.group                             request
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

/** What can be asked of a run. */
export const RunControl = { cancel: "cancel", pause: "pause", resume: "resume", status: "status" } as const;
export type RunControl = (typeof RunControl)[keyof typeof RunControl];

/** Last part of an event's subject. */
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

/** Whether a name can be a part of a subject: run ids and replica names are. */
export function isSubjectToken(value: string): boolean {
  return TOKEN.test(value);
}

function token(value: string): string {
  if (!isSubjectToken(value)) {
    throw new InvalidInputError(
      `Cannot build a subject as its parts match ${TOKEN.source}: current value is "${value}"`,
      {
        path: "subject",
        allowed: TOKEN.source,
      },
    );
  }
  return value;
}

/** Subjects by what they are for. `"*"` stands for every key where a filter is wanted. */
export const subjects = {
  runRequest: () => `${PREFIX}.run.request`,
  runControl: (verb: RunControl, run: string | "*") =>
    `${PREFIX}.run.${verb}.${run === "*" ? run : token(run)}`,
  validate: (service: ValidatingService) => `${PREFIX}.${service}.validate`,
  serviceHealth: (service: string | "*") => `${PREFIX}.${service === "*" ? service : token(service)}.health`,
  datasetBatch: () => `${PREFIX}.dataset.batch`,
  rolloutJob: (run: string | "*") => `${PREFIX}.rollout.job.${run === "*" ? run : token(run)}`,
  rolloutFinished: (run: string | "*") => `${PREFIX}.rollout.finished.${run === "*" ? run : token(run)}`,
  rolloutScored: (run: string | "*") => `${PREFIX}.rollout.scored.${run === "*" ? run : token(run)}`,
  generate: (model: string | "*", replica: string) =>
    `${PREFIX}.policy.generate.${model === "*" ? model : token(model)}.${token(replica)}`,
  abort: (model: string | "*", replica: string) =>
    `${PREFIX}.policy.abort.${model === "*" ? model : token(model)}.${token(replica)}`,
  judgeScore: () => `${PREFIX}.judge.score`,
  judgeGroup: () => `${PREFIX}.judge.group`,
  /** Everything of one run in EPISODES. */
  episodes: (run: string) => `${PREFIX}.rollout.*.${token(run)}`,
  /**
   * What one run has in EPISODES, finished and scored, and in JOBS, to be purged. Written so that it lies within no
   * consumer's filter: servers before 2.9.15 make consumers whose filter covers a purged subject forget all that they have
   * delivered and skip what they have not, of other runs too.
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
 * The key that ends a subject: the run of a job, an episode or a control request, the replica of a generate request.
 * @throws {InvalidInputError} when the subject is none of Hone's.
 */
export function lastKeyOf(subject: string): string {
  const parts = subject.split(".");
  const key = parts.at(-1);
  if (parts.length < 5 || parts[0] !== "hone" || parts[1] !== "v1" || key === undefined) {
    throw new InvalidInputError(
      `Cannot read a subject as it is no ${PREFIX}.<noun>.<verb>.<key>: current value is "${subject}"`,
      {
        path: "subject",
        allowed: `${PREFIX}.<noun>.<verb>.<key>`,
      },
    );
  }
  return key;
}

/** Run of an event's subject. */
export function runOfEvent(subject: string): string {
  lastKeyOf(subject);
  return subject.split(".")[3]!;
}

/** Model of a generate or abort subject. */
export function modelOfSubject(subject: string): string {
  lastKeyOf(subject);
  return subject.split(".")[4]!;
}
