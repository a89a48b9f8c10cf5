/** For tests of agent-rollout: the service on a bus of its own, and replicas of policies whose answers the test gives. */

import path from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { publishStored, readOrdered, StreamName, subjects } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { type Episode, EpisodeSchema, type RolloutJob, RolloutJobSchema } from "@hone/proto-gen/rollout";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { loadTokenizer, type Tokenizer } from "@hone/tokenizer";
import { readConfig } from "../config.ts";
import { agentRolloutService } from "../service.ts";
import { type Behaviour, FakeGateway, type FakeGatewayOptions } from "./fake-gateway.ts";

/** The services' state folder, which contains the tokenizers' folders. */
const EXAMPLES = path.join(import.meta.dirname, "../../../../examples");
const TOKENIZER = "01-frozen-lake";

/** Limits of a rollout, unless a test gives others. */
export const LIMITS = { maxTurns: 10, maxContextTokens: 256, deadlineMs: 60_000, maxAttempts: 3 };

export type JobFields = Exclude<MessageInitShape<typeof RolloutJobSchema>, RolloutJob>;

export class RolloutWorld {
  readonly bus: TestBus;
  readonly tokenizer: Tokenizer;
  readonly #services: RunningService[] = [];
  readonly #gateways: FakeGateway[] = [];

  private constructor(bus: TestBus, tokenizer: Tokenizer) {
    this.bus = bus;
    this.tokenizer = tokenizer;
  }

  /** Starts a bus without any service. */
  static async open(): Promise<RolloutWorld> {
    return new RolloutWorld(await startBus(), await loadTokenizer(path.join(EXAMPLES, TOKENIZER)));
  }

  /** The environment variables for the service, with additional `settings`. */
  environment(settings: Record<string, string> = {}): Record<string, string> {
    return { HONE_NATS_URL: this.bus.server.url, HONE_STATE_DIR: EXAMPLES, ...settings };
  }

  /** Starts agent-rollout in this process; close() stops it. */
  async startService(settings: Record<string, string> = {}): Promise<RunningService> {
    const config = readConfig(this.environment(settings));
    const service = await startService(agentRolloutService, { config, logger: silentLogger() });
    this.#services.push(service);
    return service;
  }

  /** Starts a replica that reports its versions; close() stops it. */
  async gateway(options: FakeGatewayOptions): Promise<FakeGateway> {
    const gateway = new FakeGateway(this.bus, options);
    this.#gateways.push(gateway);
    await gateway.report();
    return gateway;
  }

  /** A replica's answer with the tokens of `text` and the end of a turn. */
  answer(text: string, kind: "answer" | "stream" = "answer"): Behaviour {
    return { kind, tokenIds: this.tokenizer.encode(`${text}<|end|>`) };
  }

  job(runId: string, fields: JobFields = {}): RolloutJob {
    return create(RolloutJobSchema, {
      runId,
      slot: { split: "train", step: 1, task: 0, index: 0 },
      runSeed: 7n,
      sampling: { temperature: 1, topP: 1, maxNewTokens: 16 },
      limits: LIMITS,
      tokenizerDigest: this.tokenizer.digest,
      tokenizerPath: TOKENIZER,
      ...fields,
    });
  }

  submit(job: RolloutJob): Promise<unknown> {
    return publishStored(this.bus, subjects.rolloutJob(job.runId), RolloutJobSchema, job);
  }

  /** Waits for the first `count` episodes of a run. @returns them, ordered by task. */
  async episodesOf(runId: string, count: number): Promise<Episode[]> {
    const stop = new AbortController();
    const found: Episode[] = [];
    const options = {
      stream: StreamName.episodes,
      filter: subjects.rolloutFinished(runId),
      signal: stop.signal,
    };
    for await (const { message } of readOrdered(this.bus, EpisodeSchema, options)) {
      found.push(message);
      if (found.length === count) break;
    }
    stop.abort();
    return found.toSorted((a, b) => a.slot!.task - b.slot!.task);
  }

  /** Waits for the first episode of a run. */
  async episodeOf(runId: string): Promise<Episode> {
    const [episode] = await this.episodesOf(runId, 1);
    return episode!;
  }

  async close(): Promise<void> {
    for (const service of this.#services) await service.stop({ graceMs: 500 });
    for (const gateway of this.#gateways) await gateway.stop();
    await this.bus.close();
  }
}
