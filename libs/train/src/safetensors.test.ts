import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CheckpointError } from "./errors.ts";
import { decodeSafeTensors, encodeSafeTensors } from "./safetensors.ts";

/** A file with one tensor of raw bytes. */
function fileWith(dtype: string, shape: number[], raw: Uint8Array): Uint8Array {
  const header = Buffer.from(JSON.stringify({ x: { dtype, shape, data_offsets: [0, raw.length] } }));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([size, header, raw]);
}

describe("safetensors", () => {
  test("tensors and metadata come back bit by bit", () => {
    const a = { shape: [2, 2], data: Float32Array.of(1, -0, Number.NaN, 1e-40) };
    const b = { shape: [1], data: Float32Array.of(7) };
    const bytes = encodeSafeTensors(
      [
        ["a", a],
        ["b", b],
      ],
      { format: "pt" },
    );
    const file = decodeSafeTensors(bytes, "x");
    assert.deepEqual(file.metadata, { format: "pt" });
    assert.deepEqual(
      [...file.tensors],
      [
        ["a", a],
        ["b", b],
      ],
    );
    assert.equal((8 + Number(new DataView(bytes.buffer).getBigUint64(0, true))) % 8, 0);
  });

  test("BF16 and F16 are read as float32", () => {
    const bf16 = new Uint8Array(Uint16Array.of(0x3fc0, 0xc000).buffer);
    assert.deepEqual(
      [...decodeSafeTensors(fileWith("BF16", [2], bf16), "x").tensors.get("x")!.data],
      [1.5, -2],
    );
    const f16 = new Uint8Array(Uint16Array.of(0x3e00, 0xc000, 0x0001, 0x7c00).buffer);
    const values = [...decodeSafeTensors(fileWith("F16", [4], f16), "x").tensors.get("x")!.data];
    assert.deepEqual(values, [1.5, -2, 2 ** -24, Number.POSITIVE_INFINITY]);
  });

  test("a file that is cut, of another type or no such file is refused with its path", () => {
    const bytes = encodeSafeTensors([["a", { shape: [4], data: new Float32Array(4) }]]);
    const wrong = [
      bytes.subarray(0, bytes.length - 1),
      bytes.subarray(0, 5),
      fileWith("I64", [1], new Uint8Array(8)),
    ];
    for (const file of wrong) {
      assert.throws(
        () => decodeSafeTensors(file, "some/path"),
        (error) => {
          return error instanceof CheckpointError && error.message.includes("some/path");
        },
      );
    }
  });
});
