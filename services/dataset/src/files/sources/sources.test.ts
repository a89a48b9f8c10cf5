import assert from "node:assert/strict";
import { mkdir, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { BoundKeys } from "@hone/config";
import { RetryableError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { parquetWriteBuffer } from "hyparquet-writer";
import type { Task } from "../../domain/task.ts";
import { SourceError } from "../../errors.ts";
import { decodeSource } from "../../nats/decode-source.ts";
import { RowFiles } from "../row-files.ts";
import { offlineHub } from "../testing/offline-hub.ts";
import { openSource } from "./open-source.ts";

describe("sources of rows", () => {
  let folder: TemporaryFolder;
  let root: string;
  let cacheFolder: string;
  let files: RowFiles;
  before(async () => {
    folder = await temporaryFolder("sources");
    root = path.join(folder.path, "files");
    cacheFolder = path.join(folder.path, "cache");
    await mkdir(root);
  });
  after(() => folder[Symbol.asyncDispose]());
  beforeEach(() => {
    files = new RowFiles({ root, cacheFolder, logger: silentLogger() });
  });

  const put = async (name: string, content: string | Uint8Array) => {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), content);
  };
  const putRows = (name: string, rows: readonly object[]) =>
    put(name, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const open = (spec: unknown, environment: Record<string, string> = {}) => {
    const keys = new BoundKeys("HONE_DATASET_KEY", environment, "the dataset service");
    return openSource(decodeSource(spec), { files, hub: offlineHub({ root }), keys });
  };
  const all = async (spec: unknown) => {
    const order = await open(spec);
    return order.take({ runSeed: 1, cursor: 0, count: order.size, isShuffled: false });
  };
  const rowsOf = (tasks: readonly Task[]) =>
    tasks.map((task) => (task.kind === "row" ? (JSON.parse(task.rowJson) as Record<string, unknown>) : {}));

  describe("parquet", () => {
    const write = (name: string, count: number, rowGroupSize = 1_000) =>
      put(
        name,
        new Uint8Array(
          parquetWriteBuffer({
            rowGroupSize,
            columnData: [
              { name: "data_source", data: Array.from({ length: count }, () => "sums"), type: "STRING" },
              {
                name: "index",
                data: Array.from({ length: count }, (_, index) => BigInt(index)),
                type: "INT64",
              },
              {
                name: "reward_model",
                data: Array.from({ length: count }, (_, index) => ({ ground_truth: String(index) })),
                type: "JSON",
              },
            ],
          }),
        ),
      );

    test("gives all rows of all row groups, in any order, with 64-bit integers as numbers", async () => {
      await write("rows.parquet", 2_500);
      const order = await open({ source: "parquet", path: "rows.parquet" });
      assert.equal(order.size, 2_500);
      const tasks = await order.take({ runSeed: 1, cursor: 0, count: 2_500, isShuffled: true });
      const rows = rowsOf(tasks);
      assert.deepEqual(
        rows.map(({ index }) => Number(index)).sort((a, b) => a - b),
        Array.from({ length: 2_500 }, (_, index) => index),
      );
      for (const row of rows.slice(0, 10)) {
        assert.deepEqual(row, {
          data_source: "sums",
          index: row.index,
          reward_model: { ground_truth: String(row.index) },
        });
      }
      assert.match(tasks[0]!.id, /^rows\.parquet:\d+$/);
    });

    test("a file that has changed is read again, and the rows made from its older version are removed", async () => {
      await write("changing.parquet", 3);
      assert.equal((await open({ source: "parquet", path: "changing.parquet" })).size, 3);
      const before = await readdir(path.join(cacheFolder, "rows"));
      await write("changing.parquet", 5);
      assert.equal((await open({ source: "parquet", path: "changing.parquet" })).size, 5);
      assert.equal((await readdir(path.join(cacheFolder, "rows"))).length, before.length);
    });

    test("a file that is not Parquet is refused, as is a name that does not fit the kind of source", async () => {
      await put("broken.parquet", "PAR1 no, not really PAR1");
      await assert.rejects(
        open({ source: "parquet", path: "broken.parquet" }),
        /broken\.parquet cannot be read as Parquet/,
      );
      await putRows("rows.jsonl", [{ a: 1 }]);
      await assert.rejects(open({ source: "parquet", path: "rows.jsonl" }), /ends in \.parquet/);
      await assert.rejects(open({ source: "jsonl", path: "broken.parquet" }), /ends in \.parquet/);
    });
  });

  describe("filters", () => {
    const prompt = (content: string) => ({ prompt: [{ role: "user", content }] });

    test("leave out prompts that are empty, too long or duplicates", async () => {
      await putRows("filter.jsonl", [
        prompt("a"),
        prompt(" "),
        { other: 1 },
        prompt("a"),
        prompt("x".repeat(50)),
        { prompt: "b" },
      ]);
      const filter = { maxPromptCharacters: 40, dropDuplicates: true, dropEmpty: true };
      const tasks = await all({ source: "jsonl", path: "filter.jsonl", filter });
      assert.deepEqual(
        tasks.map(({ id }) => id),
        ["filter.jsonl:1", "filter.jsonl:6"],
      );
      assert.equal((await all({ source: "jsonl", path: "filter.jsonl" })).length, 6);
    });

    test("a filter that leaves out every row is refused with their number", async () => {
      await putRows("long.jsonl", [prompt("long"), prompt("longer")]);
      await assert.rejects(
        open({ source: "jsonl", path: "long.jsonl", filter: { maxPromptCharacters: 1 } }),
        /0 rows \(the filter leaves out all 2\)/,
      );
    });

    test("keep exactly the first of equal prompts, in any file", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.nat(30), { minLength: 1, maxLength: 200 }), async (numbers) => {
          await putRows(
            "any.jsonl",
            numbers.map((number) => prompt(`n${number}`)),
          );
          const tasks = await all({ source: "jsonl", path: "any.jsonl", filter: { dropDuplicates: true } });
          const wanted = numbers.flatMap((number, index) =>
            numbers.indexOf(number) === index ? [`any.jsonl:${index + 1}`] : [],
          );
          assert.deepEqual(
            tasks.map(({ id }) => id),
            wanted,
          );
        }),
        fuzz(40),
      );
    });
  });

  describe("indices on disk", () => {
    test("a restart reads the index and not the file", async () => {
      await putRows(
        "kept.jsonl",
        Array.from({ length: 100 }, (_, index) => ({ index })),
      );
      await open({ source: "jsonl", path: "kept.jsonl" });
      const logged: string[] = [];
      const logger = { ...silentLogger(), info: (message: string) => void logged.push(message) };
      files = new RowFiles({ root, cacheFolder, logger });
      const rows = rowsOf(await all({ source: "jsonl", path: "kept.jsonl" }));
      assert.deepEqual(
        rows.map(({ index }) => index),
        Array.from({ length: 100 }, (_, index) => index),
      );
      assert.deepEqual(logged, []);
    });

    test("an index that is cut short is made again", async () => {
      await putRows(
        "cut.jsonl",
        Array.from({ length: 100 }, (_, index) => ({ index })),
      );
      await open({ source: "jsonl", path: "cut.jsonl" });
      const folderOfIndices = path.join(cacheFolder, "index");
      for (const name of await readdir(folderOfIndices))
        await truncate(path.join(folderOfIndices, name), 150);
      files = new RowFiles({ root, cacheFolder, logger: silentLogger() });
      assert.equal((await all({ source: "jsonl", path: "cut.jsonl" })).length, 100);
    });

    test("rows are served even where the cache folder cannot be written", async () => {
      await putRows("plain.jsonl", [{ a: 1 }]);
      await writeFile(path.join(folder.path, "no-folder"), "");
      files = new RowFiles({
        root,
        cacheFolder: path.join(folder.path, "no-folder"),
        logger: silentLogger(),
      });
      assert.equal((await all({ source: "jsonl", path: "plain.jsonl" })).length, 1);
      await rm(path.join(folder.path, "no-folder"));
    });
  });

  describe("hugging_face", () => {
    test("finds the files of a split and a subset, one after the other", async () => {
      await putRows("hub/main/train-00001-of-00002.jsonl", [{ n: 2 }]);
      await putRows("hub/main/train-00000-of-00002.jsonl", [{ n: 0 }, { n: 1 }]);
      await putRows("hub/main/test-00000-of-00001.jsonl", [{ n: 9 }]);
      await putRows("hub/socratic/train.jsonl", [{ n: 5 }]);
      await put("hub/dataset_infos.json", "{}");
      await put("hub/README.md", "train");
      const numbers = async (more: object) =>
        rowsOf(await all({ source: "hugging_face", path: "hub", ...more })).map(({ n }) => n);
      assert.deepEqual(await numbers({ subset: "main" }), [0, 1, 2]);
      assert.deepEqual(await numbers({ subset: "main", split: "test" }), [9]);
      assert.deepEqual(await numbers({}), [0, 1, 2, 5]);
      await assert.rejects(numbers({ split: "validation" }), /split "validation".*main\/test-00000/);
      await assert.rejects(numbers({ path: "../hub" }), SourceError);
    });
  });

  describe("mix", () => {
    test("names the part that cannot be read", async () => {
      await putRows("good.jsonl", [{ a: 1 }]);
      const parts = [
        { tasks: { source: "jsonl", path: "good.jsonl" } },
        { tasks: { source: "jsonl", path: "absent.jsonl" } },
      ];
      await assert.rejects(open({ source: "mix", parts }), (error) => {
        assert.ok(error instanceof SourceError);
        assert.equal(error.path, "parts[1].tasks.path");
        return true;
      });
    });
  });

  describe("http", () => {
    let server: Server;
    let url: string;
    let answer: (body: string, authorization: string | undefined) => { status?: number; body: unknown };
    before(async () => {
      server = createServer((request, response) => {
        let body = "";
        request.on("data", (chunk: Buffer) => (body += chunk.toString()));
        request.on("end", () => {
          const { status = 200, body: value } = answer(body, request.headers.authorization);
          response.writeHead(status).end(JSON.stringify(value));
        });
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tasks`;
    });
    after(() => {
      server.closeAllConnections();
      server.close();
    });

    test("asks for rows by their numbers, with its key", async () => {
      answer = (body, authorization) => {
        assert.equal(authorization, "Bearer secret");
        if (body === "") return { body: { size: 1_000_000 } };
        const { elements } = JSON.parse(body) as { elements: number[] };
        return { body: { rows: elements.map((element) => ({ prompt: `row ${element}` })) } };
      };
      const spec = { source: "http", url, keyVariable: "HONE_DATASET_KEY" };
      const order = await open(spec, { HONE_DATASET_KEY: "secret", HONE_DATASET_KEY_HOSTS: "127.0.0.1" });
      assert.equal(order.size, 1_000_000);
      const tasks = await order.take({ runSeed: 1, cursor: 5, count: 3, isShuffled: true });
      for (const [index, { prompt }] of rowsOf(tasks).entries()) {
        assert.equal(tasks[index]!.id, `${new URL(url).host}:${String(prompt).slice(4)}`);
      }
      await assert.rejects(open(spec), /HONE_DATASET_KEY, which is not set for the dataset service/);
    });

    test("a key is not sent to a host that it is not meant for", async () => {
      answer = () => assert.fail("asked");
      const environment = { HONE_DATASET_KEY: "secret", HONE_DATASET_KEY_HOSTS: "tasks.example.com" };
      await assert.rejects(
        open({ source: "http", url, keyVariable: "HONE_DATASET_KEY" }, environment),
        (error) => error instanceof SourceError && /HONE_DATASET_KEY_HOSTS/.test(error.message),
      );
    });

    test("a server that is busy is asked again later, one that answers nonsense is refused", async () => {
      answer = () => ({ status: 503, body: "later" });
      await assert.rejects(open({ source: "http", url }), RetryableError);
      answer = () => ({ status: 404, body: "no" });
      await assert.rejects(open({ source: "http", url }), SourceError);
      answer = () => ({ body: { size: 0 } });
      await assert.rejects(open({ source: "http", url }), /must answer with \{ "size"/);
      answer = (body) => ({ body: body === "" ? { size: 5 } : { rows: [] } });
      const order = await open({ source: "http", url });
      await assert.rejects(
        order.take({ runSeed: 1, cursor: 0, count: 2, isShuffled: false }),
        /2 rows that it was asked for, but answered with 0 rows/,
      );
    });

    test("an endless answer is refused, and reading it stops", { timeout: 30_000 }, async () => {
      const closed = Promise.withResolvers<void>();
      const endless = createServer((_request, response) => {
        response.once("close", closed.resolve);
        const send = () => {
          while (!response.destroyed && response.write(" ".repeat(1024 * 1024)));
        };
        response.on("drain", send);
        send();
      });
      await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
      const { port } = endless.address() as AddressInfo;
      await assert.rejects(open({ source: "http", url: `http://127.0.0.1:${port}` }), SourceError);
      await closed.promise;
      endless.close();
    });
  });
});
