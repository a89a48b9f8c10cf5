/**
 * Reads a safetensors file into arrays that the caller has: float32 data goes straight to its place, narrower types
 * through small buffers, so that loading never holds a second copy of the weights.
 */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { CheckpointError } from "../errors.ts";
import { codecOf, ElementType } from "./element-types.ts";
import {
  headerLength,
  LENGTH_BYTES,
  parseHeader,
  type SafeTensorsHeader,
  type TensorEntry,
} from "./header.ts";

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
    const pieces = this.#pieces(targetOf);
    const startNext = (): { piece: Piece; read: Promise<void> } | undefined => {
      const { value: piece } = pieces.next();
      return piece && { piece, read: readFully(this.#file, piece.raw, piece.at, this.path) };
    };
    // The next piece is on its way while this one is hashed.
    for (let current = startNext(); current !== undefined; ) {
      const { piece, read } = current;
      await read;
      current = startNext();
      hash.update(piece.raw);
      piece.finish?.();
    }
    return hash.digest("hex");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  /** What is read, in the order of the file. A piece is finished before the one after the next is asked for. */
  *#pieces(targetOf: (entry: TensorEntry) => Float32Array | undefined): Generator<Piece, undefined> {
    const scratches: ArrayBuffer[] = [];
    const nextScratch = (): ArrayBuffer => {
      const scratch = scratches.length < 2 ? new ArrayBuffer(CHUNK_BYTES) : scratches.shift()!;
      scratches.push(scratch);
      return scratch;
    };
    for (const entry of this.header.entries) {
      const { begin, end, type } = entry;
      const { bytes: width, widen } = codecOf(type);
      const target = targetOf(entry);
      for (let at = begin; at < end; at += CHUNK_BYTES) {
        const bytes = Math.min(CHUNK_BYTES, end - at);
        if (target !== undefined && type === ElementType.F32) {
          yield { at, raw: new Uint8Array(target.buffer, target.byteOffset + at - begin, bytes) };
          continue;
        }
        const scratch = nextScratch();
        const raw = new Uint8Array(scratch, 0, bytes);
        if (target === undefined) {
          yield { at, raw };
          continue;
        }
        const first = (at - begin) / width;
        yield { at, raw, finish: () => widen(scratch, target.subarray(first, first + bytes / width)) };
      }
    }
    return undefined;
  }
}

/** A part of a tensor. */
interface Piece {
  /** Position of its first byte in the file. */
  readonly at: number;
  /** Where it is read to. */
  readonly raw: Uint8Array;
  /** Takes it to its place where that is another one. */
  readonly finish?: () => void;
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
