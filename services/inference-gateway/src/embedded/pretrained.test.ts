/** Generation with checkpoints of every model family gives the logits of transformers, in one run and token by token. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { loadModel } from "@hone/checkpoint";
import { PAGE_ROWS, quantizeWeights } from "@hone/nn";
import { exactEightBitType } from "@hone/tensor";
import { OnnxRunner } from "./onnx/onnx-runner.ts";

/** Made by make_families.py in the same folder. */
const FAMILIES = path.join(import.meta.dirname, "../../../../libs/checkpoint/fixtures/families");
const eightBits = await exactEightBitType();
const LAYOUTS = [
  { contextLayout: "pooled" },
  { contextLayout: "pooled", eightBits },
  { contextLayout: "slots", eightBits },
  { contextLayout: "slots", isWeightLeft: true },
  { contextLayout: "slots", isWeightLeft: false },
] as const;
const MAX_LOGIT_ERROR = 2e-4;
/**
 * With eight bits: the size of all errors at a position, relative to the size of all logits there. Each product of these models, which
 * are 16 wide, is wrong by one to two percent, and a logit passes ten of them.
 */
const MAX_ROUNDING = 0.15;
/** The same on average over the positions: two to three percent. */
const MAX_MEAN_ROUNDING = 0.04;

describe("pretrained checkpoints", () => {
  for (const [name, layout] of readdirSync(FAMILIES).flatMap((name) =>
    LAYOUTS.map((l) => [name, l] as const),
  )) {
    test(`${name}, ${JSON.stringify(layout)}: logits are those of transformers`, async () => {
      const folder = path.join(FAMILIES, name);
      const { tokens } = JSON.parse(await readFile(path.join(folder, "reference.json"), "utf8")) as {
        tokens: number[][];
      };
      const logits = await readLogits(path.join(folder, "reference.safetensors"));
      const { spec, weights } = await loadModel(folder);
      const isRounded = "eightBits" in layout;
      const given = isRounded ? await quantizeWeights(spec, weights, eightBits) : weights;
      const runner = await OnnxRunner.create(spec, given, {
        maxCacheBytes: 1_000_000,
        maxSequences: 2,
        intraOpThreads: 1,
        ...layout,
      });
      const roundings: number[] = [];
      const check = (row: number, position: number, found: Float32Array) => {
        const begin = (row * tokens[row]!.length + position) * spec.vocabSize;
        const wanted = logits.subarray(begin, begin + spec.vocabSize);
        const errors = found.map((value, i) => value - wanted[i]!);
        const rounding = Math.hypot(...errors) / Math.hypot(...wanted);
        roundings.push(rounding);
        const isClose = isRounded
          ? rounding < MAX_ROUNDING
          : errors.every((error) => Math.abs(error) < MAX_LOGIT_ERROR);
        assert.ok(isClose, `row ${row}, position ${position}: ${rounding}`);
      };
      const items = tokens.map((ids, row) => {
        const numPages = Math.ceil(ids.length / PAGE_ROWS);
        const pages = Int32Array.from({ length: numPages }, (_, i) => 1 + row * numPages + i);
        return { tokenIds: Int32Array.from(ids), pages, wantsLogits: true };
      });
      const whole = await runner.run([{ ...items[1]!, start: 0, count: tokens[1]!.length }]);
      check(1, tokens[1]!.length - 1, whole.logits!);
      for (let at = 0; at < tokens[0]!.length; at++) {
        const step = await runner.run([{ ...items[0]!, start: at, count: 1 }]);
        check(0, at, step.logits!);
      }
      await runner.dispose();
      if (isRounded) {
        const mean = roundings.reduce((sum, rounding) => sum + rounding) / roundings.length;
        assert.ok(mean < MAX_MEAN_ROUNDING, `on average ${mean}`);
      }
    });
  }
});

/** The tensor `logits` of a safetensors file. */
async function readLogits(file: string): Promise<Float32Array> {
  const bytes = await readFile(file);
  const headerBytes = Number(bytes.readBigUInt64LE());
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes)) as Record<
    string,
    { data_offsets: [number, number] }
  >;
  const [begin, end] = header.logits!.data_offsets;
  return new Float32Array(
    Uint8Array.from(bytes.subarray(8 + headerBytes + begin, 8 + headerBytes + end)).buffer,
  );
}
