import assert from "node:assert/strict";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { parseYaml } from "@hone/config";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { problemOfRow } from "./domain/check-rows.ts";
import { openSource } from "./files/open-source.ts";
import { RowFiles } from "./files/row-files.ts";
import { testingHub } from "./files/testing-hub.ts";
import { decodeSource } from "./nats/decode-source.ts";

/* What docs/data.md shows is run as it stands there. */

const PAGE = path.join(import.meta.dirname, "..", "..", "..", "docs", "data.md");

describe("docs/data.md", async () => {
  const page = await readFile(PAGE, "utf8");
  const block = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(page)?.[1] ?? "";
  const row = JSON.parse(block("json")) as Record<string, unknown>;
  const { dataset } = parseYaml(block("yaml"), "data.md") as { dataset: { train: unknown; eval: unknown } };

  test("its row is one that any run takes", () =>
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
      hub: testingHub({ root }),
      keys: {},
    };
    const train = await openSource(decodeSource(dataset.train), parts);
    // Of its own three rows one comes twice.
    assert.equal(train.size, 5 + 2);
    const tasks = await train.take({ runSeed: 1, cursor: 0, count: 1_024, isShuffled: true });
    const share = tasks.filter(({ id }) => id.startsWith("gsm8k-train.parquet:")).length / tasks.length;
    assert.ok(Math.abs(share - 0.75) < 0.01, `${share}`);
    const evaluation = await openSource(decodeSource(dataset.eval), parts);
    assert.equal(evaluation.size, 1);
  });
});
