/** Writes a safetensors file piece by piece, so that no second copy of the weights is held. */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { codecOf, ElementType } from "./element-types.ts";
import { encodeHeader, type TensorLayout, type WeightWriter } from "./header.ts";

/** Values converted and written at once. */
const CHUNK_VALUES = 2 ** 20;

/** A tensor with its values. Their number must match the shape. */
export interface TensorToWrite extends TensorLayout {
  readonly data: Float32Array;
}

/** A writer that writes files one after the other from weights in memory. */
export function weightWriter(weights: Readonly<Record<string, Float32Array>>): WeightWriter {
  return async (files) => {
    const written: { digest: string; bytes: number }[] = [];
    for (const { path, tensors, metadata } of files) {
      const filled = tensors.map((each) => ({ ...each, data: weights[each.parameter]! }));
      written.push(await writeSafeTensors(path, filled, metadata));
    }
    return written;
  };
}

/** Writes tensors in the given order. @returns the hexadecimal SHA-256 of the file and its size. */
export async function writeSafeTensors(
  path: string,
  tensors: readonly TensorToWrite[],
  metadata: Readonly<Record<string, string>>,
): Promise<{ digest: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  await using file = await open(path, "w");
  const write = async (chunk: Uint8Array) => {
    // The chunk is hashed while it is being written.
    const written = writeFully(file, chunk, bytes);
    hash.update(chunk);
    await written;
    bytes += chunk.length;
  };
  await write(encodeHeader(tensors, metadata));
  const scratch = new ArrayBuffer(CHUNK_VALUES * Float32Array.BYTES_PER_ELEMENT);
  for (const { data, type } of tensors) {
    const { bytes: width, narrow } = codecOf(type);
    for (let at = 0; at < data.length; at += CHUNK_VALUES) {
      const values = data.subarray(at, at + CHUNK_VALUES);
      if (type === ElementType.F32) {
        await write(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
        continue;
      }
      narrow(values, scratch);
      await write(new Uint8Array(scratch, 0, values.length * width));
    }
  }
  return { digest: hash.digest("hex"), bytes };
}

async function writeFully(file: FileHandle, chunk: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < chunk.length; ) {
    done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
  }
}
