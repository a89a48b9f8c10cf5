/**
 * Reads a safetensors file into arrays that the caller has: float32 data goes straight to its place, narrower types
 * through one small buffer, so that loading never holds a second copy of the weights.
 */
import { createHash, type Hash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { codecOf, ElementType } from "./element-types.ts";
import { CheckpointError } from "./errors.ts";
import {
  headerLength,
  LENGTH_BYTES,
  parseHeader,
  type SafeTensorsHeader,
  type TensorEntry,
} from "./safetensors-header.ts";

/** Bytes read at once: large enough for the disk, small beside any model. */
const CHUNK_BYTES = 4 * 2 ** 20;

export class SafeTensorsReader implements AsyncDisposable {
  readonly path: string;
  readonly header: SafeTensorsHeader;
  readonly #file: FileHandle;
  /** Up to where the data begins. */
  readonly #start: Uint8Array;

  private constructor(path: string, file: FileHandle, start: Uint8Array, header: SafeTensorsHeader) {
    this.path = path;
    this.#file = file;
    this.#start = start;
    this.header = header;
  }

  /** @throws CheckpointError where the file is missing, truncated or no safetensors file. */
  static async open(path: string): Promise<SafeTensorsReader> {
    const file = await openFile(path);
    try {
      const { size } = await file.stat();
      const length = new Uint8Array(Math.min(LENGTH_BYTES, size));
      await readFully(file, length, 0, path);
      const start = new Uint8Array(LENGTH_BYTES + headerLength(length, size, path));
      await readFully(file, start, 0, path);
      const header = parseHeader(start.subarray(LENGTH_BYTES), size, path);
      return new SafeTensorsReader(path, file, start, header);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Reads the whole file once.
   * @param targetOf the array of each tensor, of its size; undefined = it is not wanted.
   * @returns SHA-256 of the file, hexadecimal.
   */
  async readInto(targetOf: (entry: TensorEntry) => Float32Array | undefined): Promise<string> {
    const hash = createHash("sha256").update(this.#start);
    const scratch = new ArrayBuffer(CHUNK_BYTES);
    for (const entry of this.header.entries) await this.#readTensor(entry, targetOf(entry), scratch, hash);
    return hash.digest("hex");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  async #readTensor(
    { type, begin, end }: TensorEntry,
    target: Float32Array | undefined,
    scratch: ArrayBuffer,
    hash: Hash,
  ): Promise<void> {
    const { bytes: width, widen } = codecOf(type);
    const isInPlace = target !== undefined && type === ElementType.F32;
    for (let at = begin; at < end; at += CHUNK_BYTES) {
      const bytes = Math.min(CHUNK_BYTES, end - at);
      const raw = isInPlace
        ? new Uint8Array(target.buffer, target.byteOffset + at - begin, bytes)
        : new Uint8Array(scratch, 0, bytes);
      await readFully(this.#file, raw, at, this.path);
      hash.update(raw);
      if (target === undefined || isInPlace) continue;
      const first = (at - begin) / width;
      widen(scratch, target.subarray(first, first + bytes / width));
    }
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (cause) {
    const current = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(path, "it is a readable file", current, { cause });
  }
}

async function readFully(file: FileHandle, into: Uint8Array, at: number, path: string): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, at + done);
    if (bytesRead === 0) throw new CheckpointError(path, "it does not shrink", `${at + done} bytes`);
    done += bytesRead;
  }
}
