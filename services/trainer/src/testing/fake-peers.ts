/**
 * The services around the trainer, as small programs that speak the real protocol: dataset, the four validators, and
 * agent-rollout with judge in one. For tests only.
 *
 * The "agent" samples tokens by the job's seeds and gets a reward for one of them, so that a run is a function of its
 * file, as with the real services.
 */

import { create } from "@bufbuild/protobuf";
import { messageIdOf, type Outcome, Random, rolloutIdOf, turnSeed } from "@hone/core";
import {
  type Bus,
  consumeWork,
  outcomeToWire,
  publishStored,
  type Responder,
  respond,
  respondToHealth,
  ServiceName,
  StreamName,
  slotFromWire,
  subjects,
  ValidatingService,
  type WorkConsumer,
} from "@hone/messaging";
import { BatchReplySchema, BatchRequestSchema, TaskSchema } from "@hone/proto-gen/dataset";
import {
  EpisodeSchema,
  type RolloutJob,
  RolloutJobSchema,
  SampleSchema,
  ScoredEpisodeSchema,
  ScoreSchema,
  VersionSpanSchema,
} from "@hone/proto-gen/rollout";
import { type Problem, ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";

const DATASET_SIZE = 6n;
const PROMPT = [3, 4, 5];
const ANSWER_TOKENS = 4;
/** Ids that the agent samples from; the first earns a reward. */
const ANSWER_IDS = [6, 7, 8, 9];

export interface FakePeers {
  /** Jobs executed, by slot, in the order in which they came. */
  readonly executed: string[];
  /** Problems that a service's validation answers with. */
  readonly problems: Map<string, Problem[]>;
  /** Called before a job is answered; may wait, or throw to fail the attempt. */
  beforeEpisode: (job: RolloutJob) => Promise<void>;
  /** Bytes of padding in each episode. */
  paddingBytes: number;
  /** How a rollout fails, and why; undefined = it completes. */
  failureOf: (job: RolloutJob) => { readonly outcome: Outcome; readonly reason: string } | undefined;
  stop(): Promise<void>;
}

/** Starts the services. @param silent those that do not answer `validate`. */
export function startFakePeers(bus: Bus, silent: readonly ValidatingService[] = []): FakePeers {
  const onError = (error: unknown) => console.error("fake peer", error);
  const running: Array<Responder | WorkConsumer> = [];
  const peers: FakePeers = {
    executed: [],
    problems: new Map(),
    beforeEpisode: async () => undefined,
    paddingBytes: 0,
    failureOf: () => undefined,
    stop: async () => {
      await Promise.all(running.map((one) => ("stop" in one ? one.stop() : one.drain())));
    },
  };
  running.push(
    respond(bus, subjects.datasetBatch(), BatchRequestSchema, BatchReplySchema, {
      handle: ({ message, reply }) =>
        reply(
          create(BatchReplySchema, {
            size: DATASET_SIZE,
            tasks: Array.from({ length: message.count }, (_, i) =>
              create(TaskSchema, {
                id: `task:${message.cursor + BigInt(i)}`,
                environmentSeed: message.cursor + BigInt(i),
              }),
            ),
          }),
        ),
      onError,
    }),
    consumeWork(bus, RolloutJobSchema, {
      stream: StreamName.jobs,
      durable: "agent-rollout",
      filter: subjects.rolloutJob("*"),
      concurrency: 64,
      ackWaitMs: 5_000,
      handle: ({ message }) => execute(bus, peers, message),
      onError,
    }),
  );
  for (const service of Object.values(ServiceName)) {
    if (service === ServiceName.trainer) continue;
    const health = { instanceId: "fake", isReady: true, reasons: [] };
    running.push(respondToHealth(bus, service, async () => health, onError));
  }
  for (const service of Object.values(ValidatingService)) {
    if (silent.includes(service)) continue;
    running.push(startValidator(bus, service, peers));
  }
  return peers;
}

/** Answers `validate` for one service. */
export function startValidator(bus: Bus, service: ValidatingService, peers: FakePeers): Responder {
  return respond(bus, subjects.validate(service), ValidateRequestSchema, ValidateReplySchema, {
    handle: ({ reply }) =>
      reply(create(ValidateReplySchema, { service, problems: peers.problems.get(service) ?? [] })),
    onError: (error) => console.error("fake validator", error),
  });
}

async function execute(bus: Bus, peers: FakePeers, job: RolloutJob): Promise<void> {
  const slot = slotFromWire(job.slot);
  peers.executed.push(`${slot.split}.${slot.step}.${slot.task}.${slot.index}`);
  await peers.beforeEpisode(job);
  const failure = peers.failureOf(job);
  const random = new Random(turnSeed(Number(job.runSeed), slot, 0));
  const answer = Array.from({ length: ANSWER_TOKENS }, () => random.pick(ANSWER_IDS));
  const reward = answer.filter((id) => id === ANSWER_IDS[0]).length;
  const isScripted = job.scriptedPolicy !== undefined;
  const sample = create(SampleSchema, {
    tokenIds: [...PROMPT, ...answer],
    lossMask: Uint8Array.from([...PROMPT.map(() => 0), ...answer.map(() => 1)]),
    logprobs: isScripted ? [] : answer.map(() => -Math.log(ANSWER_IDS.length)),
    versions: isScripted
      ? []
      : [create(VersionSpanSchema, { version: job.lowestVersion, tokenCount: ANSWER_TOKENS })],
  });
  const episode = create(EpisodeSchema, {
    runId: job.runId,
    slot: job.slot!,
    attempt: 1,
    outcome: outcomeToWire(failure?.outcome ?? "completed"),
    reason: failure?.reason ?? "",
    resumption: job.resumption,
    samples: [sample],
    metrics: { success: reward > 1 ? 1 : 0 },
    task: { ...job.task!, rowJson: "x".repeat(peers.paddingBytes) },
    environmentReturn: reward,
    cursor: job.cursor,
  });
  const { runId, attempt, resumption } = episode;
  const named = (what: string) => ({
    messageId: messageIdOf(`${rolloutIdOf(runId, slot)}/${attempt}${what}`, resumption),
  });
  const finished = await publishStored(
    bus,
    subjects.rolloutFinished(runId),
    EpisodeSchema,
    episode,
    named(""),
  );
  const scored = create(ScoredEpisodeSchema, {
    finished: { position: BigInt(finished.sequence), runId, slot: job.slot!, attempt, resumption },
    reward,
    scores: [create(ScoreSchema, { judge: "environment", weight: 1, value: reward })],
  });
  await publishStored(bus, subjects.rolloutScored(runId), ScoredEpisodeSchema, scored, named("/scored"));
}
