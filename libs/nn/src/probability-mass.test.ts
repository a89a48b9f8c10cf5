import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { Graph, GraphSession } from "@hone/tensor";
import { LARGEST_UNIFORM, massBlocks, outputMasses } from "./probability-mass.ts";

describe("massBlocks()", () => {
  test("divides the vocabularies of known families but not small or prime sizes", () => {
    for (const size of [32_000, 49_152, 128_256, 151_936, 262_144]) {
      assert.ok(massBlocks(size) > 0 && size % massBlocks(size) === 0, `${size}`);
    }
    assert.deepEqual([64, 4_095, 65_537].map(massBlocks), [0, 0, 0]);
  });
});

describe("outputMasses()", () => {
  test("computes each row's largest scaled logit, block masses and drawn block", async () => {
    const size = 4_160;
    const temperatures = [1, 0.7, 1.5];
    const graph = new Graph("masses");
    outputMasses(graph, graph.input("logits", "float32", [1, "wanted", size]), size);
    const session = await GraphSession.create(graph, { intraOpThreads: 1 });
    const random = new Random(1);
    const logits = Float32Array.from({ length: 3 * size }, () => 10 * random.next() - 5);
    const uniforms = [0.3, 0, LARGEST_UNIFORM];
    const { largest, blockMasses, drawnBlocks, drawnLogits } = await session.run({
      logits: { dtype: "float32", data: logits, shape: [1, 3, size] },
      inverseTemperatures: {
        dtype: "float32",
        data: Float32Array.from(temperatures, (temperature) => 1 / temperature),
        shape: [1, 3, 1],
      },
      uniforms: { dtype: "float32", data: Float32Array.from(uniforms), shape: [1, 3, 1] },
    });
    await session.release();
    const blocks = massBlocks(size);
    assert.deepEqual(blockMasses!.shape, [1, 3, blocks]);
    for (const [row, temperature] of temperatures.entries()) {
      const scaled = [...logits.subarray(row * size, (row + 1) * size)].map((logit) => logit / temperature);
      const most = Math.max(...scaled);
      assert.ok(Math.abs(Number(largest!.data[row]) - most) < 1e-5);
      for (let block = 0; block < blocks; block++) {
        const members = scaled.slice((block * size) / blocks, ((block + 1) * size) / blocks);
        const mass = members.reduce((sum, value) => sum + Math.exp(value - most), 0);
        assert.ok(Math.abs(Number(blockMasses!.data[row * blocks + block]) / mass - 1) < 1e-5);
      }
      const masses = [...(blockMasses!.data as Float32Array).subarray(row * blocks, (row + 1) * blocks)];
      const target = uniforms[row]! * masses.reduce((sum, mass) => sum + mass, 0);
      const drawn = Number(drawnBlocks!.data[row]);
      const before = masses.slice(0, drawn).reduce((sum, mass) => sum + mass, 0);
      assert.ok(before <= target + 1e-3 && target < before + masses[drawn]! + 1e-3, `row ${row}`);
      const blockSize = size / blocks;
      const begin = row * size + drawn * blockSize;
      assert.deepEqual(
        (drawnLogits!.data as Float32Array).subarray(row * blockSize, (row + 1) * blockSize),
        logits.subarray(begin, begin + blockSize),
      );
    }
  });
});
