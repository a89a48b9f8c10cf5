/**
 * Who may do what on the bus: one user for each service and one for people who submit runs.
 *
 * This is the only place that says so. `hone up` makes the users of its own bus of it, and the chart reads it from
 * helm/hone/files/bus-rights.json, which `npm run generate` writes.
 *
 * U1: a user hears answers below a prefix of its own, and nobody else listens there. Who answers it may publish below
 *     `<prefix>.answer` (people have one prefix for all); the rest of the subject is random (reply-inbox.ts), so that only
 *     who was asked can answer. The server's own `allow_responses` is not used: with it whoever is asked may publish to any
 *     subject that the question names as its reply.
 * U2: the trainer alone makes, changes and purges streams.
 * U3: a bucket is written by the service that its values are of.
 */

import { ANSWER_TOKEN } from "./reply-inbox.ts";
import { PAYLOAD_STORE, StreamName } from "./streams.ts";
import { RunControl, ServiceName, subjects } from "./subjects.ts";

/** Subjects on which a user may publish and which it may listen to. */
export interface BusRights {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** The user of people and programs that submit runs, control them and read what is told of them. */
export const CLIENT = "client";
export const BUS_USERS = [...Object.values(ServiceName), CLIENT] as const;
export type BusUser = (typeof BUS_USERS)[number];

/** First token of the subjects on which a user hears answers (U1); people's is what every NATS client has by itself. */
export function inboxPrefixOf(user: BusUser): string {
  return user === CLIENT ? "_INBOX" : `_INBOX_${user}`;
}

/** The rights of every user. */
export function busRights(): Readonly<Record<BusUser, BusRights>> {
  const health = subjects.serviceHealth();
  return {
    dataset: {
      publish: [...common(), ...answers(...ASKERS, ServiceName.agentRollout)],
      subscribe: [subjects.datasetBatch(), subjects.validate("dataset"), health, inbox("dataset")],
    },
    "agent-rollout": {
      publish: [
        ...common(),
        ...answers(...ASKERS),
        ...durable(StreamName.jobs, "agent-rollout"),
        ...readInOrder("KV_RUN_STATE"),
        ...readInOrder("KV_REPLICAS"),
        subjects.rolloutFinished("*"),
        "hone.v1.policy.generate.*.*",
        "hone.v1.policy.abort.*.*",
        subjects.datasetBatch(),
      ],
      subscribe: [subjects.validate("agent-rollout"), health, inbox("agent-rollout")],
    },
    "inference-gateway": {
      publish: [
        ...common(),
        ...answers(...ASKERS, ServiceName.agentRollout),
        ...readInOrder("KV_RUN_STATE"),
        ...readInOrder("KV_REPLICAS"),
        "$KV.REPLICAS.>",
      ],
      subscribe: [
        "hone.v1.policy.generate.*.*",
        "hone.v1.policy.abort.*.*",
        subjects.validate("inference-gateway"),
        health,
        inbox("inference-gateway"),
      ],
    },
    judge: {
      publish: [
        ...common(),
        ...answers(...ASKERS),
        ...durable(StreamName.episodes, "judge"),
        `$JS.API.STREAM.MSG.GET.${StreamName.episodes}`,
        subjects.rolloutScored("*"),
      ],
      subscribe: [
        subjects.judgeScore(),
        subjects.judgeGroup(),
        subjects.validate("judge"),
        health,
        inbox("judge"),
      ],
    },
    trainer: {
      publish: [
        ...common(),
        ...answers(...ASKERS),
        ...makeStreams(),
        ...durable(StreamName.runs, "trainer"),
        ...readInOrder(StreamName.episodes),
        ...readInOrder("KV_RUN_STATE"),
        ...readInOrder("KV_REPLICAS"),
        "$KV.RUN_STATE.>",
        `$JS.API.CONSUMER.LIST.${StreamName.episodes}`,
        "$JS.API.CONSUMER.INFO.*.*",
        `$JS.API.STREAM.PURGE.${StreamName.episodes}`,
        `$JS.API.STREAM.PURGE.${StreamName.jobs}`,
        `$JS.API.STREAM.PURGE.OBJ_${PAYLOAD_STORE}`,
        subjects.rolloutJob("*"),
        subjects.event("*", "*"),
        "hone.v1.*.validate",
        subjects.datasetBatch(),
        subjects.judgeGroup(),
        health,
      ],
      subscribe: [...controls(), health, inbox("trainer")],
    },
    tracer: {
      publish: [
        ...common(),
        ...answers(...ASKERS),
        ...durable(StreamName.episodes, "tracer-rollouts"),
        ...durable(StreamName.events, "tracer-events"),
        ...readInOrder("KV_RUN_STATE"),
        ...readInOrder(StreamName.dead),
        "$JS.API.CONSUMER.INFO.*.*",
        health,
      ],
      subscribe: [health, inbox("tracer")],
    },
    client: {
      publish: [
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.INFO.*",
        "$JS.API.CONSUMER.INFO.*.*",
        `$JS.API.STREAM.MSG.GET.${StreamName.dead}`,
        ...readInOrder(StreamName.events),
        ...readInOrder("KV_RUN_STATE"),
        ...readInOrder(`OBJ_${PAYLOAD_STORE}`),
        `$O.${PAYLOAD_STORE}.>`,
        subjects.runRequest(),
        ...controls(),
        "hone.v1.*.validate",
        subjects.judgeScore(),
        health,
      ],
      subscribe: ["hone.v1.event.>", inbox(CLIENT)],
    },
  };
}

/** Who asks every service: for its health, whether a run is right, or to score. */
const ASKERS: readonly BusUser[] = [ServiceName.trainer, ServiceName.tracer, CLIENT];

function inbox(user: BusUser): string {
  return `${inboxPrefixOf(user)}.>`;
}

/** U1 */
function answers(...askers: readonly BusUser[]): string[] {
  return askers.map((user) =>
    // Other programs than Hone's own, such as `nats request`, make their subjects without that token.
    user === CLIENT ? inbox(user) : `${inboxPrefixOf(user)}.${ANSWER_TOKEN}.>`,
  );
}

function controls(): string[] {
  return Object.values(RunControl).map((verb) => subjects.runControl(verb, "*"));
}

/** What every service does: looks at streams, reads and writes large payloads, puts aside what it cannot work on. */
function common(): string[] {
  return [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    "hone.v1.dead.*",
    "$KV.DEATHS.>",
    ...readInOrder("KV_DEATHS"),
    `$O.${PAYLOAD_STORE}.>`,
    ...readInOrder(`OBJ_${PAYLOAD_STORE}`),
  ];
}

/** A durable consumer is made, looked at, read and acknowledged. */
function durable(stream: StreamName, consumer: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}.${consumer}.>`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.${consumer}`,
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.DELETE.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ];
}

/** A stream is read in order, by a consumer with a random name. */
function readInOrder(stream: string): string[] {
  return [
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
    `$JS.API.DIRECT.GET.${stream}`,
    `$JS.API.DIRECT.GET.${stream}.>`,
    `$JS.API.STREAM.MSG.GET.${stream}`,
    `$JS.FC.${stream}.>`,
  ];
}

/** U2 */
function makeStreams(): string[] {
  const buckets = ["KV_RUN_STATE", "KV_REPLICAS", "KV_DEATHS", `OBJ_${PAYLOAD_STORE}`];
  return [...Object.values(StreamName), ...buckets].flatMap((stream) => [
    `$JS.API.STREAM.CREATE.${stream}`,
    `$JS.API.STREAM.UPDATE.${stream}`,
  ]);
}
