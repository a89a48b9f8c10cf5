import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { StreamName, subjects, ValidatingService } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { absurdText, badBodies, damaged, fuzz, withInputs } from "@hone/testing/fuzz";
import fc from "fast-check";
import { readDatasetConfig } from "./config.ts";
import { SourceError } from "./errors.ts";
import { indexRows, JsonlFile } from "./files/jsonl-file.ts";
import { RowFiles } from "./files/row-files.ts";
import { datasetService } from "./service.ts";

const LAKE = {
  source: "environment",
  environment: "frozen_lake",
  config: { size: 4 },
  seeds: { from: 0, to: 100 },
};
const ROWS = { source: "jsonl", path: "rows.jsonl" };

describe("dataset and bad input", { timeout: 120_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let service: RunningService;
  before(async () => {
    folder = await temporaryFolder("dataset-bad");
    bus = await startBus();
    await writeFile(path.join(folder.path, "rows.jsonl"), '{"q":"a"}\n{"q":"b"}\n');
    service = await startService(datasetService, {
      config: readDatasetConfig({
        HONE_NATS_URL: bus.server.url,
        HONE_FILES: folder.path,
        HONE_STATE_DIR: path.join(folder.path, "state"),
      }),
      logger: silentLogger(),
    });
    await service.becameReady;
  });
  after(async () => {
    await service?.stop();
    await bus?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  const deadCount = async () => (await bus.manager.streams.info(StreamName.dead)).state.messages;
  const ask = (subject: string, body: Uint8Array) =>
    bus.connection.request(subject, body, { timeout: 10_000 });
  /** Sends all requests at once and waits until each is answered or stored in the stream DEAD. */
  const askAll = async (subject: string, bodies: Uint8Array[]) => {
    const before = await deadCount();
    let answered = 0;
    const inbox = bus.connection.subscribe(`_INBOX.answers.${subject}`, { callback: () => void answered++ });
    for (const body of bodies) bus.connection.publish(subject, body, { reply: `_INBOX.answers.${subject}` });
    // Several of them ask for the largest batch there may be.
    await eventually(
      `an answer or a dead message for each request on ${subject}`,
      async () => answered + (await deadCount()) - before === bodies.length,
      { deadlineMs: 60_000 },
    );
    inbox.unsubscribe();
  };

  test("every request for a batch is answered or stored as dead, and the next good one is answered", async () => {
    for (const source of [LAKE, ROWS]) {
      const valid = create(BatchRequestSchema, {
        sourceJson: JSON.stringify(source),
        runSeed: 7n,
        count: 2,
        shuffled: true,
      });
      await withInputs(badBodies(BatchRequestSchema, valid), 200, (bodies) =>
        askAll(subjects.datasetBatch(), bodies),
      );
      const answer = await ask(subjects.datasetBatch(), toBinary(BatchRequestSchema, valid));
      assert.equal(fromBinary(BatchReplySchema, answer.data).tasks.length, 2);
    }
  });

  test("a batch that ends beyond the last safe integer is refused and not counted without end", async () => {
    const request = create(BatchRequestSchema, {
      sourceJson: JSON.stringify(LAKE),
      cursor: BigInt(Number.MAX_SAFE_INTEGER),
      count: 1_000,
    });
    const answer = await ask(subjects.datasetBatch(), toBinary(BatchRequestSchema, request));
    assert.match(
      fromBinary(BatchReplySchema, answer.data).error,
      /end of the batch is \d+; it must be below 2\^53/,
    );
  });

  test("every request to validate a run is answered or stored as dead, and the next good one is answered", async () => {
    const subject = subjects.validate(ValidatingService.dataset);
    const valid = create(ValidateRequestSchema, {
      configJson: JSON.stringify({ dataset: { train: LAKE, eval: ROWS } }),
    });
    await withInputs(badBodies(ValidateRequestSchema, valid), 200, (bodies) => askAll(subject, bodies));
    const answer = await ask(subject, toBinary(ValidateRequestSchema, valid));
    assert.deepEqual(fromBinary(ValidateReplySchema, answer.data).problems, []);
  });

  test("any text as a path names a file below the folder or is refused", async () => {
    const files = new RowFiles({
      root: folder.path,
      cacheFolder: path.join(folder.path, "cache"),
      logger: silentLogger(),
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(absurdText, fc.webPath()), async (named) => {
        await files
          .open(named)
          .catch((error: unknown) => assert.ok(error instanceof SourceError, String(error)));
      }),
      fuzz(200),
    );
  });

  test("a file of any bytes is read row by row or refused with the line's number", async () => {
    const good = Buffer.from(`${'{"q":"a","n":[1,{"x":null}]}\n'.repeat(5)}{"agent_name":"b"}`);
    const file = path.join(folder.path, "any.jsonl");
    await fc.assert(
      fc.asyncProperty(fc.oneof(damaged(good), fc.uint8Array({ maxLength: 200 })), async (bytes) => {
        await writeFile(file, bytes);
        try {
          const opened = new JsonlFile(file, await indexRows(file, "any.jsonl", undefined));
          const rows = await opened.read(Array.from({ length: opened.size }, (_, index) => index));
          for (const { value } of rows) assert.ok(typeof value === "object" && !Array.isArray(value));
        } catch (error) {
          assert.ok(error instanceof SourceError, String(error));
          assert.match(error.message, /any\.jsonl:\d+/);
        }
      }),
      fuzz(200),
    );
  });
});
