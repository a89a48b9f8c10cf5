/**
 * The rights on the bus: one user for each service, one for clients that submit runs, and one for sinks of metrics.
 *
 * This is the only place that defines them. `hone up` creates the users of its bus from it, and the accounts of the chart's
 * bus are derived from it (bus-accounts.ts).
 *
 * U1: a user receives answers below its own prefix, and no other user may subscribe there. Services that answer it may publish
 *     below `<prefix>.answer` (all clients share one prefix). The rest of the subject is random (reply-inbox.ts), so that only
 *     the service that got the request can answer. The server's own `allow_responses` is not used, as with it a service may
 *     publish on any subject that a request names for its reply.
 * U2: only the trainer creates, changes and purges streams and creates consumers. A consumer may deliver the messages of its
 *     stream to any subject, and rights cannot limit to which. Other services request single messages.
 * U3: a bucket is written by the service that owns its values. Each user has a bucket for large payloads: every user reads it,
 *     only its owner stores them, and only the trainer removes them.
 * U4: only the judge writes the rewards that are given later. Others request it, each kind of giver on a subject of its own, so
 *     that the judge knows by whose right a reward comes. The service that runs agents may pass on only what a session's key
 *     allows.
 * U5: the tracer passes on what people who hold its page's token ask for: to pause, resume and cancel runs, and rewards that are
 *     awaited. It submits no runs and writes no bucket of others.
 */

import { ANSWER_TOKEN } from "../exchange/reply-inbox.ts";
import {
  OLD_PAYLOAD_STORE,
  PAYLOAD_STORES,
  type PayloadWriter,
  payloadStoreOf,
  streamOfStore,
} from "../payloads/payload-stores.ts";
import { EventSinkDurable } from "../streams/durables.ts";
import { StreamName } from "../streams/streams.ts";
import { RewardGiver, RunControl, ServiceName, subjects, ValidatingService } from "../subjects.ts";

/** The subjects that a user may publish and subscribe to. */
export interface BusRights {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** The user of people and programs that submit runs, control them and read about them. */
export const CLIENT = "client";
/** The user of the program that writes runs' figures to W&B, SwanLab and Trackio (services/tracer/python). It only reads events. */
export const SINKS = "sinks";
export const BUS_USERS = [...Object.values(ServiceName), CLIENT, SINKS] as const;
export type BusUser = (typeof BUS_USERS)[number];
/** The users that send messages, which all but the sinks do. */
export const SENDING_USERS = [...Object.values(ServiceName), CLIENT] as const;

/** @returns the first token of the subjects on which a user receives answers (U1); for clients it is the default of NATS. */
export function inboxPrefixOf(user: BusUser): string {
  return user === CLIENT ? "_INBOX" : `_INBOX_${user}`;
}

/** @returns the rights of every user. */
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
        subjects.judgeReward(RewardGiver.session),
      ],
      subscribe: [
        subjects.rolloutRender(),
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
        ...answers(...ASKERS, ServiceName.agentRollout),
        ...durable(StreamName.episodes, "judge"),
        ...read("KV_RUN_STATE", "KV_REWARDS"),
        subjects.rolloutScored("*"),
        REWARDS,
      ],
      subscribe: [
        ...Object.values(RewardGiver).map((giver) => subjects.judgeReward(giver)),
        OPEN_REWARDS,
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
        ...read("KV_RUN_STATE", "KV_REPLICAS", "KV_REWARDS", StreamName.events),
        RUN_STATES,
        `$JS.API.CONSUMER.LIST.${StreamName.episodes}`,
        "$JS.API.CONSUMER.INFO.*.*",
        `$JS.API.STREAM.PURGE.${StreamName.episodes}`,
        `$JS.API.STREAM.PURGE.${StreamName.jobs}`,
        "$JS.API.STREAM.PURGE.KV_REWARDS",
        ...PAYLOAD_STREAMS.map((stream) => `$JS.API.STREAM.PURGE.${stream}`),
        subjects.rolloutJob("*"),
        subjects.event("*", "*"),
        ...validate,
        subjects.datasetBatch(),
        subjects.judgeGroup(),
        ...health,
      ],
      subscribe: [
        ...controls(),
        subjects.runLedger("*"),
        subjects.serviceHealth("trainer"),
        inbox("trainer"),
      ],
    },
    tracer: {
      publish: [
        ...common("tracer"),
        ...answers(...ASKERS),
        ...durable(StreamName.episodes, "tracer-rollouts"),
        ...durable(StreamName.episodes, "tracer-episodes"),
        ...Object.values(EventSinkDurable).flatMap((sink) => durable(StreamName.events, sink)),
        ...read("KV_RUN_STATE", "KV_REWARDS", StreamName.dead),
        "$JS.API.CONSUMER.INFO.*.*",
        subjects.rolloutRender(),
        subjects.runLedger("*"),
        ...PAGE_CONTROLS.map((verb) => subjects.runControl(verb, "*")),
        subjects.judgeReward(RewardGiver.page),
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
        ...read(StreamName.dead, StreamName.events, "KV_RUN_STATE", "KV_REWARDS"),
        ...largePayloads(CLIENT),
        subjects.runRequest(),
        ...controls(),
        subjects.runLedger("*"),
        ...validate,
        subjects.judgeScore(),
        subjects.judgeReward(RewardGiver.client),
        ...health,
      ],
      subscribe: ["hone.v1.event.>", inbox(CLIENT)],
    },
    sinks: {
      // Without the first one, its account would have an interface of JetStream of its own, which answers as well (bus-accounts.ts).
      publish: ["$JS.API.INFO", `$JS.API.STREAM.INFO.${StreamName.events}`, ...read(StreamName.events)],
      subscribe: [inbox(SINKS)],
    },
  };
}

/** What people may do with runs on the page (U5). */
const PAGE_CONTROLS = [RunControl.pause, RunControl.resume, RunControl.cancel];
/** Streams of large payloads, including that of older releases. */
const PAYLOAD_STREAMS = [...PAYLOAD_STORES, OLD_PAYLOAD_STORE].map(streamOfStore);
const RUN_STATES = "$KV.RUN_STATE.>";
const REPLICAS = "$KV.REPLICAS.>";
const REWARDS = "$KV.REWARDS.>";
const OPEN_REWARDS = "$KV.REWARDS.open.>";

/** Users that send requests to every service: for its health, to validate a run, or to score. */
const ASKERS: readonly BusUser[] = [ServiceName.trainer, ServiceName.tracer, CLIENT];

function inbox(user: BusUser): string {
  return `${inboxPrefixOf(user)}.>`;
}

/** Subjects for answers to other users (U1). */
function answers(...askers: readonly BusUser[]): string[] {
  return askers.map((user) =>
    // Other programs than Hone's own, such as `nats request`, use reply subjects without that token.
    user === CLIENT ? inbox(user) : `${inboxPrefixOf(user)}.${ANSWER_TOKEN}.>`,
  );
}

function controls(): string[] {
  return Object.values(RunControl).map((verb) => subjects.runControl(verb, "*"));
}

/** Rights of every service: to inspect streams, to read and write large payloads, and to set aside bad messages. */
function common(user: PayloadWriter): string[] {
  return [
    "$JS.API.INFO",
    "$JS.API.STREAM.INFO.*",
    "hone.v1.dead.*",
    "$KV.DEATHS.>",
    ...read("KV_DEATHS"),
    ...largePayloads(user),
  ];
}

/** The rights for large payloads (U3). */
function largePayloads(user: PayloadWriter): string[] {
  return [`$O.${payloadStoreOf(user)}.>`, ...read(...PAYLOAD_STREAMS)];
}

/** The rights to inspect a shared consumer, to read from it and to acknowledge. */
function durable(stream: StreamName, consumer: string): string[] {
  return [
    ...read(stream),
    `$JS.API.CONSUMER.INFO.${stream}.${consumer}`,
    `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`,
    `$JS.ACK.${stream}.${consumer}.>`,
  ];
}

/** The right to request single messages of streams. */
function read(...streams: readonly string[]): string[] {
  return streams.map((stream) => `$JS.API.STREAM.MSG.GET.${stream}`);
}

/** The rights to read a stream in order, with a consumer that has a random name. */
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

/** The rights to create streams and consumers (U2). */
function makeStreams(): string[] {
  const buckets = [
    "KV_RUN_STATE",
    "KV_REPLICAS",
    "KV_REWARDS",
    "KV_DEATHS",
    ...PAYLOAD_STORES.map(streamOfStore),
  ];
  return [...Object.values(StreamName), ...buckets].flatMap((stream) => [
    `$JS.API.STREAM.CREATE.${stream}`,
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.CONSUMER.CREATE.${stream}.>`,
    `$JS.API.CONSUMER.DURABLE.CREATE.${stream}.*`,
    `$JS.API.CONSUMER.DELETE.${stream}.*`,
  ]);
}
