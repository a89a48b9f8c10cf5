/**
 * Reads a safetensors file into arrays of the caller: float32 data is read directly into them, narrower types go through
 * small buffers, so that loading never holds a second copy of the weights.
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

/** Bytes read at once: large enough for fast reads, small compared with any model. */
const CHUNK_BYTES = 4 * 2 ** 20;

export class SafeTensorsReader implements AsyncDisposable {
  readonly path: string;
  readonly header: SafeTensorsHeader;
  readonly #file: FileHandle;
  /** The bytes before the data. */
  readonly #start: Uint8Array;

  private constructor(path: string, file: FileHandle, start: Uint8Array, header: SafeTensorsHeader) {
    this.path = path;
    this.#file = file;
    this.#start = start;
    this.header = header;
  }

  /** @throws CheckpointError if the file is missing, truncated or not a safetensors file. */
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
   * @param targetOf the array for a tensor, of the same size; undefined = the tensor is not wanted.
   * @param onRead called with each wanted tensor as soon as its array is filled, and waited for.
   * @returns SHA-256 of the file, hexadecimal.
   */
  async readInto(
    targetOf: (entry: TensorEntry) => Float32Array | undefined,
    onRead?: OnTensorRead,
  ): Promise<string> {
    const hash = createHash("sha256").update(this.#start);
    const pieces = this.#pieces(targetOf, onRead);
    const startNext = (): { piece: Piece; read: Promise<void> } | undefined => {
      const { value: piece } = pieces.next();
      if (piece === undefined) return undefined;
      const read = readFully(this.#file, piece.raw, piece.at, this.path);
      // It may fail while this one is used; the failure is thrown when its turn comes.
      read.catch(() => undefined);
      return { piece, read };
    };
    // The next piece is read while this one is hashed.
    for (let current = startNext(); current !== undefined; ) {
      const { piece, read } = current;
      await read;
      current = startNext();
      hash.update(piece.raw);
      piece.finish?.();
      await piece.onRead?.();
    }
    return hash.digest("hex");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  /** The pieces to read, in the order of the file. With two buffers, piece n must be finished before piece n + 2 is requested. */
  *#pieces(
    targetOf: (entry: TensorEntry) => Float32Array | undefined,
    onRead?: OnTensorRead,
  ): Generator<Piece, undefined> {
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
        const isLast = at + bytes === end;
        const last = isLast && onRead && target ? { onRead: () => onRead(entry, target) } : {};
        if (target !== undefined && type === ElementType.F32) {
          yield { at, raw: new Uint8Array(target.buffer, target.byteOffset + at - begin, bytes), ...last };
          continue;
        }
        const scratch = nextScratch();
        const raw = new Uint8Array(scratch, 0, bytes);
        if (target === undefined) {
          yield { at, raw };
          continue;
        }
        const first = (at - begin) / width;
        const finish = () => widen(scratch, target.subarray(first, first + bytes / width));
        yield { at, raw, finish, ...last };
      }
    }
    return undefined;
  }
}

/** Takes a tensor that has been read. */
export type OnTensorRead = (entry: TensorEntry, values: Float32Array) => void | Promise<void>;

/** A part of a tensor. */
interface Piece {
  /** Position of its first byte in the file. */
  readonly at: number;
  /** The bytes are read into this array. */
  readonly raw: Uint8Array;
  /** Converts the bytes into the target array; absent if they were read directly into it or are not wanted. */
  readonly finish?: () => void;
  /** Called after that with the last piece of a tensor. */
  readonly onRead?: () => void | Promise<void>;
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(path, `the file cannot be opened (${reason})`, { cause });
  }
}

async function readFully(file: FileHandle, into: Uint8Array, at: number, path: string): Promise<void> {
  for (let done = 0; done < into.length; ) {
    const { bytesRead } = await file.read(into, done, into.length - done, at + done);
    if (bytesRead === 0) {
      throw new CheckpointError(
        path,
        `the file became shorter while it was read; it has ${at + done} bytes now`,
      );
    }
    done += bytesRead;
  }
}
