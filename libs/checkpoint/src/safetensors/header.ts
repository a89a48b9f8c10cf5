/**
 * The header of a safetensors file (https://github.com/huggingface/safetensors). A file consists of 8 bytes header length
 * (little endian), the header as JSON, and the data of all tensors without gaps.
 */

import { CheckpointError, quoteStart } from "../errors.ts";
import { codecOf, type ElementType, isElementType } from "./element-types.ts";

/** Where a tensor is in the file. */
export interface TensorEntry {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  /** Offset from the start of the file. */
  readonly begin: number;
  readonly end: number;
}

export interface SafeTensorsHeader {
  /** In the order of their data. */
  readonly entries: readonly TensorEntry[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** Number of bytes that state the length of the header. */
export const LENGTH_BYTES = 8;
/** The format's own limit; a longer header means that the file is damaged. */
const MAX_HEADER_BYTES = 100_000_000;
/** Data starts at a multiple of this, so that typed arrays can view it in place. */
const ALIGNMENT = 8;

/** @throws CheckpointError if the file cannot hold a header of the stated length. */
export function headerLength(start: Uint8Array, fileBytes: number, path: string): number {
  const view = new DataView(start.buffer, start.byteOffset, start.byteLength);
  const length = start.length < LENGTH_BYTES ? -1 : Number(view.getBigUint64(0, true));
  if (length < 2 || length > MAX_HEADER_BYTES || LENGTH_BYTES + length > fileBytes) {
    const problem = "the file does not start with the size of a header that fits into it";
    throw new CheckpointError(path, `${problem}; it has ${fileBytes} bytes and may be damaged`);
  }
  return length;
}

/**
 * Reads and checks a header.
 * @param fileBytes size of the whole file.
 * @throws CheckpointError if it is not a header or does not fit the file: a tensor beyond its end, a gap, or bytes left over.
 */
export function parseHeader(header: Uint8Array, fileBytes: number, path: string): SafeTensorsHeader {
  const parsed = parseJson(header, path);
  const dataStart = LENGTH_BYTES + header.length;
  const { __metadata__: metadata = {}, ...tensors } = parsed;
  const entries = Object.entries(tensors).map(([name, entry]) => readEntry(name, entry, dataStart, path));
  entries.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let at = dataStart;
  for (const { name, begin, end } of entries) {
    if (begin !== at || end > fileBytes) {
      const rule = `the data of tensor ${name} must begin at byte ${at} and end within the file of ${fileBytes} bytes`;
      throw new CheckpointError(path, `${rule}, but the header places it at bytes ${begin} to ${end}`);
    }
    at = end;
  }
  if (at !== fileBytes) {
    throw new CheckpointError(
      path,
      `the last tensor ends at byte ${at}, but the file has ${fileBytes} bytes`,
    );
  }
  return { entries, metadata: metadata as Readonly<Record<string, string>> };
}

/** A tensor that is to be written to a file. */
export type TensorLayout = Pick<TensorEntry, "name" | "type" | "shape">;

/** A file of weights that is to be written. */
export interface WeightFile {
  readonly path: string;
  /** In the order in which they are written; `parameter` is Hone's name for a tensor. */
  readonly tensors: ReadonlyArray<TensorLayout & { readonly parameter: string }>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes the files. @returns for each file its hexadecimal SHA-256 and its size. */
export type WeightWriter = (
  files: readonly WeightFile[],
) => Promise<ReadonlyArray<{ readonly digest: string; readonly bytes: number }>>;

/** The bytes of a file before its data: length and header for tensors in the given order. */
export function encodeHeader(
  tensors: readonly TensorLayout[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const { name, type, shape } of tensors) {
    const end = offset + sizeOf(shape) * codecOf(type).bytes;
    header[name] = { dtype: type, shape, data_offsets: [offset, end] };
    offset = end;
  }
  const text = Buffer.from(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / ALIGNMENT) * ALIGNMENT;
  const bytes = Buffer.alloc(LENGTH_BYTES + headerBytes, " "); // The format pads its header with spaces.
  bytes.writeBigUInt64LE(BigInt(headerBytes), 0);
  bytes.set(text, LENGTH_BYTES);
  return bytes;
}

/** Number of values of a shape. */
export function sizeOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function parseJson(header: Uint8Array, path: string): Record<string, unknown> {
  const text = Buffer.from(header.buffer, header.byteOffset, header.byteLength).toString("utf8");
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError(path, `the header must be JSON, but begins with ${quoteStart(text)}`, {
      cause,
    });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw new CheckpointError(path, `the header must be a JSON object, but begins with ${quoteStart(text)}`);
  }
  return parsed as Record<string, unknown>;
}

function readEntry(name: string, value: unknown, dataStart: number, path: string): TensorEntry {
  const { dtype, shape, data_offsets } = (value ?? {}) as Record<string, unknown>;
  if (!isElementType(dtype)) {
    throw new CheckpointError(path, `tensor ${name} has the type ${dtype}; Hone reads F32, BF16 and F16`);
  }
  if (!isCounts(shape)) {
    const found = JSON.stringify(shape);
    throw new CheckpointError(path, `the shape of tensor ${name} must be a list of sizes, but is ${found}`);
  }
  const bytes = sizeOf(shape) * codecOf(dtype).bytes;
  if (!isCounts(data_offsets) || data_offsets.length !== 2 || data_offsets[1]! - data_offsets[0]! !== bytes) {
    const found = JSON.stringify(data_offsets);
    throw new CheckpointError(
      path,
      `the data of tensor ${name} must take ${bytes} bytes, but its offsets are ${found}`,
    );
  }
  const [begin, end] = data_offsets as [number, number];
  return { name, type: dtype, shape, begin: dataStart + begin, end: dataStart + end };
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && each >= 0);
}
