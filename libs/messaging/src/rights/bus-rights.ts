/**
 * Who may do what on the bus: one user for each service and one for people who submit runs.
 *
 * This is the only place that says so. `hone up` makes the users of its own bus of it, and the accounts of
 * the chart's bus are made of it (bus-accounts.ts).
 *
 * U1: a user hears answers below a prefix of its own, and nobody else listens there. Who answers it may publish below
 *     `<prefix>.answer` (people have one prefix for all); the rest of the subject is random (reply-inbox.ts), so that only
 *     who was asked can answer. The server's own `allow_responses` is not used: with it whoever is asked may publish to any
 *     subject that the question names as its reply.
 * U2: the trainer alone makes, changes and purges streams, and makes consumers: a consumer may deliver what its stream holds
 *     to any subject, and nothing in the question's subject says to which. Others read by single questions.
 * U3: a bucket is written by the service that its values are of. Large payloads lie in a bucket for each user: everybody reads
 *     them, their writer alone puts them, and the trainer alone removes them.
 */

import { ANSWER_TOKEN } from "../exchange/reply-inbox.ts";
import {
  OLD_PAYLOAD_STORE,
  PAYLOAD_STORES,
  payloadStoreOf,
  streamOfStore,
} from "../payloads/payload-stores.ts";
import { EventSinkDurable } from "../streams/durables.ts";
import { StreamName } from "../streams/streams.ts";
import { RunControl, ServiceName, subjects, ValidatingService } from "../subjects.ts";

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
  const health = Object.values(ServiceName).map((name) => subjects.serviceHealth(name));
  const validate = Object.values(ValidatingService).map((name) => subjects.validate(name));
  return {
    dataset: {
      publish: [...common("dataset"), ...answers(...ASKERS, ServiceName.agentRollout)],
      subscribe: [
        subjects.datasetBatch(),
        subjects.validate("dataset"),
        subjects.serviceHealth("dataset"),
        inbox("dataset"),
      ],
    },
    "agent-rollout": {
      publish: [
        ...common("agent-rollout"),
        ...answers(...ASKERS),
        ...durable(StreamName.jobs, "agent-rollout"),
        ...read("KV_RUN_STATE", "KV_REPLICAS"),
        subjects.rolloutFinished("*"),
        "hone.v1.policy.generate.*.*",
        "hone.v1.policy.abort.*.*",
        subjects.datasetBatch(),
      ],
      subscribe: [
        subjects.validate("agent-rollout"),
        subjects.serviceHealth("agent-rollout"),
        RUN_STATES,
        REPLICAS,
        inbox("agent-rollout"),
      ],
    },
    "inference-gateway": {
      publish: [
        ...common("inference-gateway"),
        ...answers(...ASKERS, ServiceName.agentRollout),
        ...read("KV_RUN_STATE", "KV_REPLICAS"),
        REPLICAS,
      ],
      subscribe: [
        "hone.v1.policy.generate.*.*",
        "hone.v1.policy.abort.*.*",
        subjects.validate("inference-gateway"),
        subjects.serviceHealth("inference-gateway"),
        RUN_STATES,
        inbox("inference-gateway"),
      ],
    },
    judge: {
      publish: [
        ...common("judge"),
        ...answers(...ASKERS),
        ...durable(StreamName.episodes, "judge"),
        ...read("KV_RUN_STATE"),
        subjects.rolloutScored("*"),
      ],
      subscribe: [
        subjects.judgeScore(),
        subjects.judgeGroup(),
        subjects.validate("judge"),
        subjects.serviceHealth("judge"),
        inbox("judge"),
      ],
    },
    trainer: {
      publish: [
        ...common("trainer"),
        ...answers(...ASKERS),
        ...makeStreams(),
        ...durable(StreamName.runs, "trainer"),
        ...readInOrder(StreamName.episodes),
        ...read("KV_RUN_STATE", "KV_REPLICAS", StreamName.events),
        RUN_STATES,
        `$JS.API.CONSUMER.LIST.${StreamName.episodes}`,
        "$JS.API.CONSUMER.INFO.*.*",
        `$JS.API.STREAM.PURGE.${StreamName.episodes}`,
        `$JS.API.STREAM.PURGE.${StreamName.jobs}`,
        ...PAYLOAD_STREAMS.map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
        subjects.rolloutJob("*"),
        subjects.event("*", "*"),
        ...validate,
        subjects.datasetBatch(),
        subjects.judgeGroup(),
        ...health,
      ],
      subscribe: [...controls(), subjects.serviceHealth("trainer"), inbox("trainer")],
    },
    tracer: {
      publish: [
        ...common("tracer"),
        ...answers(...ASKERS),
        ...durable(StreamName.episodes, "tracer-rollouts"),
        ...Object.values(EventSinkDurable).flatMap((sink) => durable(StreamName.events, sink)),
        ...read("KV_RUN_STATE", StreamName.dead),
        "$JS.API.CONSUMER.INFO.*.*",
        ...health,
      ],
      subscribe: [subjects.serviceHealth("tracer"), RUN_STATES, inbox("tracer")],
    },
    client: {
      publish: [
        "$JS.API.INFO",
        "$JS.API.STREAM.NAMES",
        "$JS.API.STREAM.LIST",
        "$JS.API.STREAM.INFO.*",
        "$JS.API.CONSUMER.INFO.*.*",
        ...read(StreamName.dead, StreamName.events, "KV_RUN_STATE"),
        ...largePayloads(CLIENT),
        subjects.runRequest(),
        ...controls(),
        ...validate,
        subjects.judgeScore(),
        ...health,
      ],
      subscribe: ["hone.v1.event.>", inbox(CLIENT)],
    },
  };
}

/** Of large payloads, those of older releases included. */
const PAYLOAD_STREAMS = [...PAYLOAD_STORES, OLD_PAYLOAD_STORE].map(streamOfStore);
const RUN_STATES = "$KV.RUN_STATE.>";
const REPLICAS = "$KV.REPLICAS.>";

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
function common(user: BusUser): string[] {
  return [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    "hone.v1.dead.*",
    "$KV.DEATHS.>",
    ...read("KV_DEATHS"),
    ...largePayloads(user),
  ];
}

/** U3 */
function largePayloads(user: BusUser): string[] {
  return [`$O.${payloadStoreOf(user)}.>`, ...read(...PAYLOAD_STREAMS)];
}

/** A shared consumer is looked at, read and acknowledged. */
function durable(stream: StreamName, consumer: string): string[] {
  return [
    ...read(stream),
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ];
}

/** Single messages of streams are asked for. */
function read(...streams: readonly string[]): string[] {
  return streams.map((stream) => `$JS.API.STREAM.MSG.GET.${stream}`);
}

/** A stream is read in order, by a consumer with a random name. */
function readInOrder(stream: string): string[] {
  return [
    ...read(stream),
    `$JS.API.CONSUMER.CREATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.INFO.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.*`,
  ];
}

/** U2 */
function makeStreams(): string[] {
  const buckets = ["KV_RUN_STATE", "KV_REPLICAS", "KV_DEATHS", ...PAYLOAD_STORES.map(streamOfStore)];
  return [...Object.values(StreamName), ...buckets].flatMap((stream) => [
    `$JS.API.STREAM.CREATE.${stream}`,
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
  ]);
}
