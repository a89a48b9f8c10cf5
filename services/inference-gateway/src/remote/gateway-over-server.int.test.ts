/** The whole service on a real bus, with an inference server in place of the embedded engine. */

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
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
import { configFromSpec } from "@hone/nn";
import {
  GenerateReplySchema,
  GenerateRequestSchema,
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
import { silentLogger } from "@hone/telemetry";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { readInferenceGatewayConfig } from "../config.ts";
import { inferenceGatewayService } from "../service.ts";
import { FakeVllmServer } from "./testing/fake-vllm-server.ts";
import { TEST_SPEC, writePolicy } from "./testing/policies.ts";

const REPLICA = "gateway-1";
const PATIENT = { deadlineMs: 60_000 };

describe("inference-gateway with a vLLM server beside it", { timeout: 180_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let runs: Bucket<RunState>;
  let replicas: Bucket<ReplicaState>;
  let server: FakeVllmServer;
  let service: RunningService;

  before(async () => {
    folder = await temporaryFolder("gateway-over-server");
    bus = await startBus();
    runs = await openBucket(bus, BucketName.runState, RunStateSchema);
    replicas = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
    const start = await writePolicy(folder.path, "start", 0);
    server = new FakeVllmServer({
      folder: start.folder,
      vocabularySize: TEST_SPEC.vocabSize,
      maxContextTokens: TEST_SPEC.maxPositions,
      scoring: "processed",
    });
    await server.start();
    const config = readInferenceGatewayConfig({
      HONE_NATS_URL: bus.server.url,
      HONE_STATE_DIR: folder.path,
      HONE_INSTANCE_ID: REPLICA,
      HONE_INFERENCE_ENGINE: "vllm",
      HONE_INFERENCE_ENGINE_URL: server.url,
      HONE_INFERENCE_REPORT_MS: "200",
    });
    service = await startService(inferenceGatewayService, { config, logger: silentLogger() });
    await service.becameReady;
  });
  after(async () => {
    await service.stop();
    await server.kill();
    await bus.close();
    await folder[Symbol.asyncDispose]();
  });

  async function publish(run: string, version: number, phase: RunPhase = RunPhase.ROLLOUT): Promise<void> {
    const { folder: written, digest } = await writePolicy(folder.path, run, version);
    const location = path.relative(folder.path, written);
    await runs.put(run, create(RunStateSchema, { runId: run, phase, version, location, digest }));
  }

  const versionsOf = async (run: string) => (await replicas.get(`${run}.${REPLICA}`))?.value.versions.join();

  async function generate(model: string, version: number) {
    const message = create(GenerateRequestSchema, {
      model,
      requestId: "call",
      promptIds: [1, 2, 3],
      sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 6 },
      seed: 3n,
      lowestVersion: version,
      highestVersion: version,
      deadlineMs: 30_000,
    });
    const reply = await requestStream(
      bus,
      subjects.generate(model, REPLICA),
      GenerateRequestSchema,
      message,
      GenerateReplySchema,
      {
        idleTimeoutMs: 10_000,
        deadlineMs: 40_000,
        isLast: ({ kind }) => kind.case === "done" || kind.case === "error",
      },
    );
    assert.equal(reply.kind.case, "done", JSON.stringify(reply.kind.value));
    return reply.kind.value as Extract<typeof reply.kind, { case: "done" }>["value"];
  }

  test("passes on the metrics of the server, which only it can reach, and no other of its routes", async () => {
    const get = (route: string) => fetch(`${service.http.url}${route}`);
    const metrics = await get("/engine/metrics");
    assert.equal(metrics.status, 200);
    assert.match(await metrics.text(), /^vllm:kv_cache_usage_perc\{engine="0",model_name="policy"\} 0$/m);
    for (const route of ["/engine/health", "/engine/metrics/%2e%2e/health", "/engine", "/engine/v1/models"])
      assert.equal((await get(route)).status, 404, route);
  });

  test("serves every version of the run that it claims, and no other run", async () => {
    await publish("lake-1", 1);
    await eventually("version 1", async () => (await versionsOf("lake-1")) === "1", PATIENT);
    await publish("lake-2", 4);
    const answer = await generate("lake-1", 1);
    assert.equal(answer.tokenIds.length, 6);
    assert.deepEqual(
      answer.versions.map(({ version, tokenCount }) => [version, tokenCount]),
      [[1, 6]],
    );
    await publish("lake-1", 2);
    await eventually("version 2", async () => (await versionsOf("lake-1")) === "2", PATIENT);
    assert.equal((await generate("lake-1", 2)).versions[0]!.version, 2);
    assert.equal(await versionsOf("lake-2"), undefined);
  });

  test("removes its entry while the server is away, and serves again when the server has its weights", async () => {
    await server.kill();
    await eventually("no entry", async () => (await versionsOf("lake-1")) === undefined, PATIENT);
    await server.start();
    await eventually("version 2 again", async () => (await versionsOf("lake-1")) === "2", PATIENT);
    assert.equal((await generate("lake-1", 2)).tokenIds.length, 6);
  });

  test("claims another run when its own has ended", async () => {
    await publish("lake-1", 2, RunPhase.COMPLETED);
    await eventually("the other run", async () => (await versionsOf("lake-2")) === "4", PATIENT);
    assert.equal((await generate("lake-2", 4)).versions[0]!.version, 4);
    assert.equal(await versionsOf("lake-1"), undefined);
  });

  test("refuses runs for which the server cannot generate, with a reason for each key", async () => {
    const runFile = {
      name: "lake",
      model: { path: "owner/name", lora: { rank: 2 } },
      dataset: { train: { source: "environment", environment: "frozen_lake", seeds: { from: 0, to: 10 } } },
      agent: { name: "frozen_lake" },
      rollout: {
        tasksPerStep: 2,
        groupSize: 2,
        maxContextTokens: 5_000,
        sampling: { temperature: 0.001 },
      },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    };
    const configJson = JSON.stringify(parseRunFile(JSON.stringify(runFile)));
    const modelConfigJson = JSON.stringify(configFromSpec({ ...TEST_SPEC, numLayers: 2 }));
    const { problems } = await request(
      bus,
      subjects.validate(ValidatingService.inferenceGateway),
      ValidateRequestSchema,
      create(ValidateRequestSchema, { configJson, modelConfigJson }),
      ValidateReplySchema,
      { timeoutMs: 20_000 },
    );
    assert.deepEqual(
      problems.map(({ key }) => key),
      ["rollout.maxContextTokens", "rollout.sampling.temperature", "model.lora", "model"],
    );
  });
});
