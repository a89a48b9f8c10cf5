import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";
import { describe, test } from "node:test";
import { BoundKeys, parseYaml } from "@hone/config";
import { silentLogger } from "@hone/telemetry";
import { eventually, temporaryFolder } from "@hone/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { problemOfRow } from "./domain/check-rows.ts";
import { RowFiles } from "./files/row-files.ts";
import { openSource } from "./files/sources/open-source.ts";
import { offlineHub } from "./files/testing/offline-hub.ts";
import { decodeSource } from "./nats/decode-source.ts";

/* Runs the examples of docs/data.md as they stand there. */

const PAGE = path.join(import.meta.dirname, "..", "..", "..", "docs", "data.md");

describe("docs/data.md", async () => {
  const page = await readFile(PAGE, "utf8");
  const block = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(page)?.[1] ?? "";
  const row = JSON.parse(block("json")) as Record<string, unknown>;
  const { dataset } = parseYaml(block("yaml"), "data.md") as { dataset: { train: unknown; eval: unknown } };

  test("its row is accepted by every run", () =>
    assert.equal(problemOfRow(row, { groundTruthFor: undefined }), undefined));

  test("its sources give the rows of the files that they name", async () => {
    await using folder = await temporaryFolder("data-page");
    const { path: root } = folder;
    await mkdir(path.join(root, "data/gsm8k/main"), { recursive: true });
    const numbered = (index: number) => ({ ...row, prompt: `${index} * 2?` });
    const columns = ["data_source", "prompt", "reward_model"] as const;
    const parquet = parquetWriteBuffer({
      columnData: columns.map((name) => ({
        name,
        data: Array.from({ length: 5 }, (_, index) => (numbered(index) as Record<string, unknown>)[name]),
        type: name === "reward_model" ? "JSON" : "STRING",
      })),
    });
    await writeFile(path.join(root, "data/gsm8k-train.parquet"), new Uint8Array(parquet));
    const own = [0, 1, 1].map((index) => `${JSON.stringify(numbered(index))}\n`).join("");
    await writeFile(path.join(root, "data/own.jsonl"), own);
    await writeFile(path.join(root, "data/gsm8k/main/test-00000-of-00001.jsonl"), JSON.stringify(row));
    const cacheFolder = path.join(root, "cache");
    const logger = silentLogger();
    const parts = {
      files: new RowFiles({ root, cacheFolder, logger }),
      hub: offlineHub({ root }),
      keys: BoundKeys.none,
    };
    const train = await openSource(decodeSource(dataset.train), parts);
    // One of the three rows in own.jsonl is a duplicate.
    assert.equal(train.size, 5 + 2);
    const tasks = await train.take({ runSeed: 1, cursor: 0, count: 1_024, isShuffled: true });
    const share = tasks.filter(({ id }) => id.startsWith("gsm8k-train.parquet:")).length / tasks.length;
    assert.ok(Math.abs(share - 0.75) < 0.01, `${share}`);
    const evaluation = await openSource(decodeSource(dataset.eval), parts);
    assert.equal(evaluation.size, 1);
  });

  test("its server gives tasks that a run accepts", async () => {
    await using folder = await temporaryFolder("data-server");
    const { path: root } = folder;
    const program = block("js");
    const name = /^\/\/ file: (\S+)$/m.exec(program)?.[1] ?? assert.fail("no server on the page");
    await writeFile(path.join(root, name), program);
    const port = await freePort();
    const env = { ...process.env, PORT: String(port) };
    const server = spawn(process.execPath, [name], { cwd: root, env, stdio: "inherit" });
    try {
      const parts = {
        files: new RowFiles({ root, cacheFolder: path.join(root, "cache"), logger: silentLogger() }),
        hub: offlineHub({ root }),
        keys: BoundKeys.none,
      };
      const open = () => openSource(decodeSource({ source: "http", url: `http://127.0.0.1:${port}` }), parts);
      await eventually("the server to answer", () =>
        open().then(
          () => true,
          () => false,
        ),
      );
      const order = await open();
      assert.equal(order.size, 1_000_000);
      const tasks = await order.take({ runSeed: 1, cursor: 3, count: 4, isShuffled: true });
      for (const task of tasks) {
        assert.ok(task.kind === "row");
        const given = JSON.parse(task.rowJson) as { reward_model: { ground_truth: string } };
        assert.equal(problemOfRow(given, { groundTruthFor: undefined }), undefined);
        assert.equal(given.reward_model.ground_truth, String(8 * Number(task.id.split(":").at(-1))));
      }
      assert.equal(new Set(tasks.map(({ id }) => id)).size, 4);
    } finally {
      server.kill("SIGKILL");
    }
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === "object" && address !== null ? address.port : assert.fail("no port");
}
