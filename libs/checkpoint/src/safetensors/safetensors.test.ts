import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CheckpointError } from "../errors.ts";
import { readTensors } from "../testing.ts";
import { ElementType } from "./element-types.ts";
import { SafeTensorsReader } from "./reader.ts";
import { writeSafeTensors } from "./writer.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "hone-safetensors-"));
});
after(() => rm(folder, { recursive: true }));

/** Writes a file with the given header and data. */
async function fileWith(header: unknown, data: Uint8Array): Promise<string> {
  const text = Buffer.from(JSON.stringify(header));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  const file = path.join(folder, "raw.safetensors");
  await writeFile(file, Buffer.concat([size, text, data]));
  return file;
}

const one = (dtype: string, shape: number[], bytes: number) => ({
  x: { dtype, shape, data_offsets: [0, bytes] },
});

describe("safetensors", () => {
  test("float32 values are read back with the same bits, with metadata, digest and size", async () => {
    const file = path.join(folder, "a.safetensors");
    const a = Float32Array.of(1, -0, Number.NaN, 1e-40);
    const b = Float32Array.from({ length: 3 * 2 ** 20 }, (_, i) => i);
    const type = ElementType.F32;
    const written = await writeSafeTensors(
      file,
      [
        { name: "a", type, shape: [2, 2], data: a },
        { name: "b", type, shape: [3, 2 ** 20], data: b },
      ],
      { format: "pt" },
    );
    const bytes = await readFile(file);
    assert.equal(written.bytes, bytes.length);
    assert.equal(written.digest, createHash("sha256").update(bytes).digest("hex"));
    assert.equal((8 + Number(bytes.readBigUInt64LE())) % 8, 0);
    const tensors = await readTensors(file);
    assert.deepEqual([...tensors.keys()], ["a", "b"]);
    assert.deepEqual(Buffer.from(tensors.get("a")!.buffer), Buffer.from(a.buffer));
    assert.ok(Buffer.from(tensors.get("b")!.buffer).equals(Buffer.from(b.buffer)));
    await using reader = await SafeTensorsReader.open(file);
    assert.deepEqual(reader.header.metadata, { format: "pt" });
    const isShared = (size: number) => new Float32Array(new SharedArrayBuffer(4 * size));
    const digest = await reader.readInto(({ shape }) => isShared(shape[0]! * shape[1]!));
    assert.equal(digest, written.digest);
  });

  for (const type of [ElementType.F16, ElementType.BF16]) {
    test(`every ${type} number keeps its bits when it is read and written back`, async () => {
      const halves = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
      const data = new Uint8Array(halves.buffer);
      const source = await fileWith(one(type, [256, 256], data.length), data);
      const values = (await readTensors(source)).get("x")!;
      const copy = path.join(folder, "copy.safetensors");
      await writeSafeTensors(copy, [{ name: "x", type, shape: [256, 256], data: values }], {});
      const written = new Uint16Array(Uint8Array.from((await readFile(copy)).subarray(-data.length)).buffer);
      const changed = halves.findIndex((half, i) => written[i] !== half && !Number.isNaN(values[i]));
      assert.equal(changed, -1);
      assert.ok(Number.isNaN((await readTensors(copy)).get("x")!.at(-1)));
    });
  }

  test("numbers are rounded to the nearest, ties to even", async () => {
    const data = Float32Array.of(1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -11, 1 + 3 * 2 ** -11, 1e9);
    const file = path.join(folder, "rounded.safetensors");
    await writeSafeTensors(
      file,
      [
        { name: "bf16", type: ElementType.BF16, shape: [5], data },
        { name: "f16", type: ElementType.F16, shape: [5], data },
      ],
      {},
    );
    const tensors = await readTensors(file);
    assert.deepEqual([...tensors.get("bf16")!], [1, 1 + 2 ** -6, 1, 1, 998_244_352]);
    const f16 = [1 + 2 ** -8, 1 + 3 * 2 ** -8, 1, 1 + 2 ** -9, Number.POSITIVE_INFINITY];
    assert.deepEqual([...tensors.get("f16")!], f16);
  });

  const eight = new Uint8Array(8);
  const cases: [what: string, header: unknown, data: Uint8Array, message: RegExp][] = [
    [
      "a file that is cut",
      one("F32", [4], 16),
      eight,
      /data of tensor x must begin at byte \d+ and end within the file of \d+ bytes, but/,
    ],
    [
      "bytes that no tensor has",
      one("F32", [1], 4),
      eight,
      /the last tensor ends at byte \d+, but the file has \d+ bytes/,
    ],
    [
      "another element type",
      one("I64", [1], 8),
      eight,
      /tensor x has the type I64; Hone reads F32, BF16 and F16/,
    ],
    [
      "a shape that does not fit its bytes",
      one("F32", [3], 8),
      eight,
      /data of tensor x must take 12 bytes, but its offsets are/,
    ],
    [
      "a shape that is none",
      one("F32", [-2], 8),
      eight,
      /shape of tensor x must be a list of sizes, but is \[-2\]/,
    ],
    ["a header that is no object", [1, 2], eight, /header must be a JSON object, but begins with "\[1,2\]/],
    [
      "a gap between two tensors",
      { ...one("F32", [1], 4), y: { dtype: "F32", shape: [1], data_offsets: [8, 12] } },
      new Uint8Array(12),
      /data of tensor y must begin at byte/,
    ],
  ];
  for (const [what, header, data, message] of cases) {
    test(`${what} is rejected with the file's path`, async () => {
      const file = await fileWith(header, data);
      await assert.rejects(readTensors(file), (error) => {
        assert.ok(error instanceof CheckpointError && error.path === file);
        assert.match(error.message, message);
        return true;
      });
    });
  }

  test("a file without a header and a missing file are rejected", async () => {
    const file = path.join(folder, "short");
    for (const bytes of [Buffer.from("abc"), Buffer.from("an HTML page, not a model")]) {
      await writeFile(file, bytes);
      await assert.rejects(
        readTensors(file),
        /does not start with the size of a header that fits into it; it has \d+ bytes/,
      );
    }
    await assert.rejects(readTensors(path.join(folder, "nowhere")), /the file cannot be opened \(ENOENT/);
  });
});
