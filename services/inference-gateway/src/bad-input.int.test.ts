import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { saveCheckpoint } from "@hone/checkpoint";
import { BucketName, StreamName, subjects, ValidatingService } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { initialiseWeights, resolveModelSpec } from "@hone/nn";
import { GenerateReplySchema, GenerateRequestSchema } from "@hone/proto-gen/policy";
import { RunPhase, RunStateSchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { badBodies, withInputs } from "@hone/testing/fuzz";
import { readInferenceGatewayConfig } from "./config.ts";
import { inferenceGatewayService } from "./service.ts";

const REPLICA = "gateway-1";
const MODEL = "lake-1";
const spec = resolveModelSpec({
  vocabSize: 40,
  hiddenSize: 16,
  numLayers: 1,
  numHeads: 2,
  maxPositions: 256,
});

describe("inference-gateway and bad input", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let service: RunningService;
  before(async () => {
    folder = await temporaryFolder("gateway-bad");
    bus = await startBus();
    service = await startService(inferenceGatewayService, {
      config: readInferenceGatewayConfig({
        HONE_NATS_URL: bus.server.url,
        HONE_STATE_DIR: folder.path,
        HONE_INSTANCE_ID: REPLICA,
        HONE_INFERENCE_VERSION_WAIT_MS: "50",
        HONE_INFERENCE_CACHE_MIB: "4",
      }),
      logger: silentLogger(),
    });
    await service.becameReady;
  });
  after(async () => {
    await service?.stop({ graceMs: 500 });
    await bus?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  const deadCount = async () => (await bus.manager.streams.info(StreamName.dead)).state.messages;
  const valid = create(GenerateRequestSchema, {
    model: MODEL,
    requestId: "call",
    promptIds: [1, 2, 3],
    sampling: { temperature: 1, topP: 1, topK: 0, maxNewTokens: 4 },
    seed: 3n,
    lowestVersion: 1,
    highestVersion: 1,
    deadlineMs: 2_000,
  });
  /** Sends all requests at once. Each must end with a last answer or as a dead letter. */
  async function askAll(subject: string, bodies: Uint8Array[], isLast: (data: Uint8Array) => boolean) {
    const before = await deadCount();
    let ended = 0;
    const inbox = bus.connection.subscribe(`_INBOX.answers.${subject}`, {
      callback: (_, message) => {
        if (isLast(message.data)) ended++;
      },
    });
    for (const body of bodies) bus.connection.publish(subject, body, { reply: `_INBOX.answers.${subject}` });
    await eventually(
      `an end of each request on ${subject}`,
      async () => ended + (await deadCount()) - before === bodies.length,
      { deadlineMs: 20_000 },
    );
    inbox.unsubscribe();
  }

  test("invalid entries in RUN_STATE delay no policy, and every request ends", async () => {
    const states = await bus.keyValue.open(BucketName.runState);
    const location = path.join("runs", MODEL, "1-1");
    const saved = await saveCheckpoint(path.join(folder.path, location), {
      spec,
      weights: initialiseWeights(spec, 1),
      companions: {},
    });
    const state = create(RunStateSchema, {
      runId: MODEL,
      phase: RunPhase.ROLLOUT,
      version: 1,
      location,
      digest: saved.digest,
    });
    await withInputs(badBodies(RunStateSchema, state), 60, async (bodies) => {
      for (const [index, body] of bodies.entries()) await states.put(`state-${index}`, body);
    });
    await states.put(MODEL, toBinary(RunStateSchema, state));
    const subject = subjects.generate(MODEL, REPLICA);
    const goodAnswer = () =>
      eventually("a good answer", async () => {
        const answer = await bus.connection.request(subject, toBinary(GenerateRequestSchema, valid), {
          timeout: 5_000,
        });
        const { kind } = fromBinary(GenerateReplySchema, answer.data);
        return kind.case === "done" ? kind.value : undefined;
      });
    // States are read one after the other, so once the last one is served, the invalid ones before it have been skipped.
    await goodAnswer();
    const isLast = (data: Uint8Array) => {
      const { kind } = fromBinary(GenerateReplySchema, data);
      return kind.case === "done" || kind.case === "error";
    };
    await withInputs(badBodies(GenerateRequestSchema, valid), 200, (bodies) =>
      askAll(subject, bodies, isLast),
    );
    assert.equal((await goodAnswer()).tokenIds.length, 4);
  });

  test("every check of a run is answered, or becomes a dead letter", async () => {
    const check = create(ValidateRequestSchema, {
      configJson: JSON.stringify({ name: "x", rollout: { groupSize: 2 } }),
    });
    const subject = subjects.validate(ValidatingService.inferenceGateway);
    await withInputs(badBodies(ValidateRequestSchema, check), 100, (bodies) =>
      askAll(subject, bodies, () => true),
    );
  });
});
