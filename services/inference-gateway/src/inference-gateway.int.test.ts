import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { saveCheckpoint } from "@hone/checkpoint";
import { parseRunFile } from "@hone/config";
import {
  type Bucket,
  BucketName,
  openBucket,
  request,
  requestStream,
  subjects,
  ValidatingService,
} from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import {
  FinishReason,
  type GenerateReply,
  GenerateReplySchema,
  type GenerateRequest,
  GenerateRequestSchema,
  GenerateError_Reason as Reason,
  type ReplicaState,
  ReplicaStateSchema,
} from "@hone/proto-gen/policy";
import {
  RunPhase,
  type RunState,
  RunStateSchema,
  ValidateReplySchema,
  ValidateRequestSchema,
} from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { createLogger, LogLevel } from "@hone/telemetry";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { readInferenceGatewayConfig } from "./config.ts";
import { inferenceGatewayService } from "./service.ts";

const spec = resolveModelSpec({
  vocabSize: 40,
  hiddenSize: 32,
  numLayers: 2,
  numHeads: 4,
  numKeyValueHeads: 2,
  maxPositions: 2_048,
  initializerRange: 0.3,
});
const REPLICA = "gateway-1";

type AskFields = Pick<
  GenerateRequest,
  "model" | "requestId" | "promptIds" | "lowestVersion" | "highestVersion" | "deadlineMs" | "isStreaming"
>;

describe("inference-gateway on a real bus", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let runs: Bucket<RunState>;
  let replicas: Bucket<ReplicaState>;
  let service: RunningService;
  const logged: Record<string, unknown>[] = [];

  before(async () => {
    folder = await temporaryFolder("inference-gateway");
    bus = await startBus();
    runs = await openBucket(bus, BucketName.runState, RunStateSchema);
    replicas = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
    service = await start();
  });
  after(async () => {
    await service.stop();
    await bus.close();
    await folder[Symbol.asyncDispose]();
  });

  async function start(): Promise<RunningService> {
    const config = readInferenceGatewayConfig({
      HONE_NATS_URL: bus.server.url,
      HONE_STATE_DIR: folder.path,
      HONE_INSTANCE_ID: REPLICA,
      HONE_INFERENCE_HEARTBEAT_MS: "50",
      HONE_INFERENCE_VERSION_WAIT_MS: "500",
      HONE_INFERENCE_REPORT_MS: "200",
      HONE_INFERENCE_CACHE_MIB: "4",
    });
    const sink = { write: (line: string) => logged.push(JSON.parse(line) as Record<string, unknown>) };
    const logger = createLogger({ service: "inference-gateway", level: LogLevel.debug, sink });
    const started = await startService(inferenceGatewayService, { config, logger });
    await started.becameReady;
    return started;
  }

  async function publish(
    run: string,
    version: number,
    change: Partial<Pick<RunState, "phase">> = {},
  ): Promise<void> {
    const location = path.join("runs", run, `${version}-1`);
    const weights = initialiseWeights(spec, version);
    const { digest } = await saveCheckpoint(path.join(folder.path, location), {
      spec,
      weights,
      companions: {},
    });
    await runs.put(
      run,
      create(RunStateSchema, { runId: run, phase: RunPhase.ROLLOUT, version, location, digest, ...change }),
    );
  }

  const versionsOf = async (run: string) => (await replicas.get(`${run}.${REPLICA}`))?.value.versions;
  const isServing = (run: string, version: number) =>
    eventually(
      `version ${version} of ${run}`,
      async () => (await versionsOf(run))?.join() === String(version),
    );

  function ask(change: Partial<AskFields> = {}, maxNewTokens = 5) {
    return create(GenerateRequestSchema, {
      model: "lake-1",
      requestId: "call",
      promptIds: [1, 2, 3, 4],
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens },
      seed: 3n,
      lowestVersion: 1,
      highestVersion: 1,
      deadlineMs: 20_000,
      ...change,
    });
  }

  async function generate(
    message: ReturnType<typeof ask>,
    onMessage?: (reply: GenerateReply) => void,
  ): Promise<GenerateReply["kind"]> {
    const subject = subjects.generate(message.model, REPLICA);
    const reply = await requestStream(bus, subject, GenerateRequestSchema, message, GenerateReplySchema, {
      idleTimeoutMs: 5_000,
      deadlineMs: 30_000,
      isLast: ({ kind }) => kind.case === "done" || kind.case === "error",
      ...(onMessage !== undefined && { onMessage }),
    });
    return reply.kind;
  }

  async function done(message: ReturnType<typeof ask>, onMessage?: (reply: GenerateReply) => void) {
    const kind = await generate(message, onMessage);
    assert.equal(kind.case, "done", JSON.stringify(kind.value));
    return kind.value;
  }

  test("serves the policy of an active run: one reply with ids, logprobs and versions", async () => {
    await publish("lake-1", 1);
    await isServing("lake-1", 1);
    const others: GenerateReply[] = [];
    const answer = await done(ask(), (reply) => others.push(reply));
    assert.equal(answer.tokenIds.length, 5);
    assert.equal(answer.logprobs.length, 5);
    assert.equal(answer.finishReason, FinishReason.LENGTH);
    assert.deepEqual(
      answer.versions.map(({ version, tokenCount }) => [version, tokenCount]),
      [[1, 5]],
    );
    assert.ok(others.every(({ kind }) => kind.case === "heartbeat"));
    const again = await done(ask({ requestId: "again" }));
    assert.deepEqual([again.tokenIds, again.logprobs], [answer.tokenIds, answer.logprobs]);
    assert.equal(again.cachedTokens, 3);
  });

  test("logs each stage of a load when it ends, with the current and the peak memory of the process", async () => {
    await publish("told-1", 1);
    const ofRun = (message: string) =>
      logged.filter((line) => line.message === message && line.model === "told-1");
    await eventually("the load to end", () => ofRun("policy loaded").length === 1);
    const stages = ofRun("a policy is being loaded");
    assert.deepEqual(
      stages.map(({ stage }) => stage),
      ["read", "built", "swapped"],
    );
    for (const { tookMs, residentMib, peakMib } of stages) {
      assert.ok(Number(tookMs) >= 0 && Number(residentMib) > 10, JSON.stringify(stages));
      assert.ok(Number(peakMib) >= Number(residentMib), JSON.stringify(stages));
    }
    await publish("told-1", 1, { phase: RunPhase.COMPLETED });
  });

  test("streams tokens to a caller that asks", async () => {
    const tokens: number[] = [];
    const answer = await done(ask({ isStreaming: true }), ({ kind }) => {
      if (kind.case === "tokens") tokens.push(...kind.value.tokenIds);
    });
    assert.deepEqual(tokens, answer.tokenIds);
  });

  test("sends heartbeats to a caller that waits for a version, and then answers it", async () => {
    let heartbeats = 0;
    let publishing: Promise<void> | undefined;
    const answer = await done(ask({ lowestVersion: 2, highestVersion: 2 }), ({ kind }) => {
      if (kind.case !== "heartbeat") return;
      // Once the version is loaded, more heartbeats may come while the call runs.
      if (publishing === undefined) assert.ok(kind.value.queuePosition > 0);
      heartbeats++;
      publishing ??= publish("lake-1", 2);
    });
    await publishing;
    assert.ok(heartbeats > 0);
    assert.equal(answer.versions[0]!.version, 2);
    await isServing("lake-1", 2);
  });

  test("refuses versions and requests that it cannot serve, each with its reason", async () => {
    const reasonOf = async (message: ReturnType<typeof ask>) => {
      const kind = await generate(message);
      return kind.case === "error" ? kind.value.reason : kind.case;
    };
    assert.equal(await reasonOf(ask({ lowestVersion: 9, highestVersion: 9 })), Reason.BEHIND);
    assert.equal(await reasonOf(ask({ lowestVersion: 0, highestVersion: 1 })), Reason.STALE);
    assert.equal(await reasonOf(ask({ model: "unknown", deadlineMs: 100 })), Reason.BEHIND);
    const current = { lowestVersion: 2, highestVersion: 2 };
    assert.equal(await reasonOf(ask({ ...current, promptIds: [40] })), Reason.INVALID);
    assert.equal(
      await reasonOf(create(GenerateRequestSchema, { model: "lake-1", promptIds: [1] })),
      Reason.INVALID,
    );
  });

  test("ends a generation that its caller aborts, and no other one", async () => {
    const current = { lowestVersion: 2, highestVersion: 2 };
    let isAborted = false;
    const [aborted, other] = await Promise.all([
      done(ask({ ...current, requestId: "to-abort", isStreaming: true }, 1_500), ({ kind }) => {
        if (kind.case !== "tokens" || isAborted) return;
        isAborted = true;
        bus.connection.publish(subjects.abort("lake-1", REPLICA), "to-abort");
      }),
      done(ask({ ...current, requestId: "other" }, 1_500)),
    ]);
    assert.equal(aborted.finishReason, FinishReason.ABORTED);
    assert.ok(aborted.tokenIds.length < 1_500);
    assert.equal(other.tokenIds.length, 1_500);
    assert.deepEqual(other.tokenIds.slice(0, aborted.tokenIds.length), aborted.tokenIds);
  });

  test("serves several runs, and unloads one that has ended", async () => {
    await publish("lake-2", 7);
    await isServing("lake-2", 7);
    const answer = await done(ask({ model: "lake-2", lowestVersion: 7, highestVersion: 7 }));
    assert.equal(answer.versions[0]!.version, 7);
    await publish("lake-2", 7, { phase: RunPhase.COMPLETED });
    await eventually("lake-2 to be unloaded", async () => (await versionsOf("lake-2")) === undefined);
    assert.deepEqual(await versionsOf("lake-1"), [2]);
  });

  test("validate accepts a run that the engine supports, and names what it does not support", async () => {
    const runFile = (maxContextTokens: number) => ({
      name: "lake",
      model: {
        init: {
          architecture: "qwen3",
          hiddenSize: 64,
          numLayers: 4,
          numHeads: 4,
          maxPositions: 100_000,
          tokenizer: "tokenizer.json",
        },
      },
      dataset: { train: { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 10 } } },
      agent: { name: "frozen_lake" },
      rollout: { tasksPerStep: 2, groupSize: 2, maxContextTokens },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    });
    const problemsOf = async (maxContextTokens: number) => {
      const configJson = JSON.stringify(parseRunFile(JSON.stringify(runFile(maxContextTokens))));
      const subject = subjects.validate(ValidatingService.inferenceGateway);
      const message = create(ValidateRequestSchema, { configJson });
      const answer = await request(bus, subject, ValidateRequestSchema, message, ValidateReplySchema, {
        timeoutMs: 5_000,
      });
      return answer.problems;
    };
    assert.deepEqual(await problemsOf(1_024), []);
    const [problem] = await problemsOf(50_000);
    // 4 MiB over 4 layers x 2 x 64 floats.
    assert.equal(problem?.key, "rollout.maxContextTokens");
    assert.equal(problem?.valueJson, "50000");
    assert.match(problem?.allowed ?? "", /at most 2048/);
  });

  test("a replica that is killed and started again gives the same tokens for the same request", async () => {
    const message = ask({ lowestVersion: 2, highestVersion: 2 });
    const first = await done(message);
    await service.stop({ graceMs: 2_000 });
    assert.equal(await versionsOf("lake-1"), undefined, "a stopped replica takes its entry back");
    service = await start();
    await isServing("lake-1", 2);
    const second = await done(message);
    assert.deepEqual([second.tokenIds, second.logprobs], [first.tokenIds, first.logprobs]);
  });

  test("a stop cuts off generations that run too long, and answers them as unavailable", async () => {
    const current = { lowestVersion: 2, highestVersion: 2 };
    let stopping: Promise<unknown> | undefined;
    const kind = await generate(ask({ ...current, isStreaming: true }, 1_900), () => {
      stopping ??= service.stop({ graceMs: 100 });
    });
    assert.ok(kind.case === "error" && kind.value.reason === Reason.UNAVAILABLE, JSON.stringify(kind.case));
    await stopping;
    service = await start();
  });
});
