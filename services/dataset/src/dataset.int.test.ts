import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { BoundKeys } from "@hone/config";
import { type Responder, request, subjects, ValidatingService } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { BatchReplySchema, BatchRequestSchema } from "@hone/proto-gen/dataset";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { silentLogger } from "@hone/telemetry";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { RowFiles } from "./files/row-files.ts";
import { offlineHub } from "./files/testing/offline-hub.ts";
import { serveDataset } from "./nats/serve.ts";

const lake = (from: number, to: number) => ({
  source: "environment",
  environment: "frozen_lake",
  config: { size: 4 },
  seeds: { from, to },
});

describe("dataset on a real bus", { timeout: 60_000 }, () => {
  let folder: TemporaryFolder;
  let bus: TestBus;
  let responders: Responder[];

  before(async () => {
    folder = await temporaryFolder("dataset");
    bus = await startBus();
    // Two replicas, which must give the same answers.
    const logger = silentLogger();
    const options = { root: folder.path, cacheFolder: path.join(folder.path, "cache"), logger };
    responders = [0, 1].flatMap(() =>
      serveDataset(
        bus,
        { files: new RowFiles(options), hub: offlineHub({ root: folder.path }), keys: BoundKeys.none },
        logger,
      ),
    );
    await bus.connection.flush();
  });
  after(async () => {
    await Promise.all(responders.map((responder) => responder.drain()));
    await bus.close();
    await folder[Symbol.asyncDispose]();
  });

  const batch = (source: unknown, fields: MessageInitShape<typeof BatchRequestSchema>) =>
    request(
      bus,
      subjects.datasetBatch(),
      BatchRequestSchema,
      create(BatchRequestSchema, { sourceJson: JSON.stringify(source), shuffled: true, ...fields }),
      BatchReplySchema,
      { timeoutMs: 10_000 },
    );
  const validate = async (dataset: unknown, judge?: unknown, warmStart?: unknown) => {
    const answer = await request(
      bus,
      subjects.validate(ValidatingService.dataset),
      ValidateRequestSchema,
      create(ValidateRequestSchema, { configJson: JSON.stringify({ dataset, judge, warmStart }) }),
      ValidateReplySchema,
      { timeoutMs: 10_000 },
    );
    return answer.problems;
  };

  test("gives the same environment tasks for the same request from either replica", async () => {
    const ask = () => batch(lake(100, 1_100), { runSeed: 7n, cursor: 990n, count: 20 });
    const answers = await Promise.all(Array.from({ length: 10 }, ask));
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    const { tasks, size } = answers[0]!;
    assert.equal(size, 1_000n);
    assert.equal(tasks.length, 20);
    for (const task of tasks) {
      assert.ok(task.environmentSeed >= 100n && task.environmentSeed < 1_100n);
      assert.equal(task.id, `frozen_lake:${task.environmentSeed}`);
      assert.equal(task.environmentConfigJson, '{"size":4}');
    }
  });

  test("serves JSON Lines rows in the file's order when they are not shuffled", async () => {
    await writeFile(path.join(folder.path, "qa.jsonl"), '{"q":"a"}\n{"q":"b"}\n{"q":"c"}\n');
    const answer = await batch(
      { source: "jsonl", path: "qa.jsonl" },
      { cursor: 2n, count: 2, shuffled: false },
    );
    assert.deepEqual(
      answer.tasks.map(({ id, rowJson }) => [id, rowJson]),
      [
        ["qa.jsonl:3", '{"q":"c"}'],
        ["qa.jsonl:1", '{"q":"a"}'],
      ],
    );
  });

  test("sends a batch that is larger than a message of the bus may be", async () => {
    await writeFile(path.join(folder.path, "big.jsonl"), `{"pad":"${"x".repeat(300_000)}"}\n`.repeat(8));
    const answer = await batch({ source: "jsonl", path: "big.jsonl" }, { count: 8 });
    assert.equal(answer.error, "");
    assert.equal(answer.tasks.length, 8);
  });

  test("answers a wrong request for a batch with what is wrong", async () => {
    const bad = await batch({ source: "jsonl", path: "missing.jsonl" }, { count: 1 });
    assert.match(bad.error, /"missing\.jsonl" must exist below HONE_FILES/);
    assert.equal(bad.isRetryable, false);
    assert.match((await batch(lake(5, 5), { count: 1 })).error, /seeds 5 to 5 is empty/);
    assert.match((await batch(lake(0, 5), { count: 0 })).error, /1 to 100000 tasks/);
    assert.match((await batch({ source: "parquet" }, { count: 1 })).error, /`path` is missing/);
  });

  test("accepts a dataset section that can be served", async () => {
    assert.deepEqual(await validate({ train: lake(0, 1_000), eval: lake(1_000, 1_200) }), []);
    assert.deepEqual(await validate({ train: { source: "jsonl", path: "qa.jsonl" } }), []);
  });

  test("names the key, the value and what is allowed for each thing that is wrong", async () => {
    await writeFile(path.join(folder.path, "broken.jsonl"), '{"q":"a"}\n{"q":\n');
    await writeFile(path.join(folder.path, "agents.jsonl"), '{"agent_name":7}\n');
    const keys = async (dataset: unknown) =>
      (await validate(dataset)).map(({ key, valueJson }) => [key, valueJson]);
    assert.deepEqual(await keys({ train: { source: "jsonl", path: "../etc.jsonl" } }), [
      ["dataset.train.path", '"../etc.jsonl"'],
    ]);
    assert.deepEqual(await keys({ train: lake(9, 9), eval: { source: "jsonl", path: "broken.jsonl" } }), [
      ["dataset.train.seeds.to", "9"],
      ["dataset.eval.path", '"broken.jsonl"'],
    ]);
    const [overlap] = await validate({ train: lake(0, 1_000), eval: lake(900, 1_100) });
    assert.equal(overlap!.key, "dataset.eval.seeds");
    assert.match(overlap!.message, /shares seeds 900 to 1000 with dataset.train/);
    const [broken] = await validate({ train: { source: "jsonl", path: "broken.jsonl" } });
    assert.match(broken!.message, /broken\.jsonl:2 is not a JSON object.*: \{"q":/);
    const [agents] = await validate({ train: { source: "jsonl", path: "agents.jsonl" } });
    assert.match(agents!.message, /^agents\.jsonl:1 cannot be used: each row must have .* as agent_name/);
    assert.equal((await validate({}))[0]!.key, "dataset.train");
  });

  test("refuses rows without the ground truth that a judge compares with", async () => {
    const rows = [
      { data_source: "openai/gsm8k", reward_model: { style: "rule", ground_truth: "72" } },
      { data_source: "chat", prompt: "hi" },
    ];
    await writeFile(path.join(folder.path, "mixed.jsonl"), rows.map((row) => JSON.stringify(row)).join("\n"));
    const train = { source: "jsonl", path: "mixed.jsonl" };
    const [problem] = await validate({ train }, [{ kind: "gsm8k" }]);
    assert.match(problem!.message, /mixed\.jsonl:2 cannot be used: .*reward_model\.ground_truth/);
    assert.deepEqual(await validate({ train }, [{ kind: "gsm8k", dataSources: ["openai/gsm8k"] }]), []);
    assert.deepEqual(await validate({ train }, [{ kind: "regex", pattern: "x" }]), []);
  });

  test("checks that the rows of a warm start are conversations", async () => {
    const problemsOf = async (name: string, ...lines: unknown[]) => {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      await writeFile(path.join(folder.path, name), text);
      const source = { source: "jsonl", path: name };
      return validate({ train: lake(0, 1_000) }, undefined, { kind: "sft", dataset: source });
    };
    const right = { prompt: "1+1?", response: "2" };
    const talk = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello" },
    ];
    assert.deepEqual(await problemsOf("right.jsonl", right, { messages: talk }), []);
    const [wrong] = await problemsOf("wrong.jsonl", right, { prompt: "1+1?", answer: "2" });
    assert.equal(wrong?.key, "warmStart.dataset.path");
    assert.match(wrong.message, /wrong\.jsonl:2 cannot be used: .*non-empty text as response.* \{"prompt"/);
  });
});
