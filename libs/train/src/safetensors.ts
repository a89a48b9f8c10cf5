/**
 * The safetensors file format (https://github.com/huggingface/safetensors): 8 bytes header length (little endian),
 * the header as JSON, then the data of all tensors. Hone writes float32 and reads F32, BF16 and F16 as float32.
 */
import { CheckpointError } from "./errors.ts";

/** A tensor in a file. */
export interface SafeTensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** Contents of a file. */
export interface SafeTensorsFile {
  readonly tensors: ReadonlyMap<string, SafeTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A header above this is damage, not a model: the format's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
/** Data starts at a multiple of this, so that arrays can be viewed in place. */
const ALIGNMENT = 8;

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** Lays tensors out in the order given. */
export function encodeSafeTensors(
  tensors: Iterable<readonly [string, SafeTensor]>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: metadata };
  const kept: SafeTensor[] = [];
  let offset = 0;
  for (const [name, tensor] of tensors) {
    const end = offset + tensor.data.byteLength;
    header[name] = { dtype: "F32", shape: tensor.shape, data_offsets: [offset, end] };
    kept.push(tensor);
    offset = end;
  }
  const text = Buffer.from(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / ALIGNMENT) * ALIGNMENT;
  const bytes = new Uint8Array(8 + headerBytes + offset);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(headerBytes), true);
  bytes.fill(0x20, 8, 8 + headerBytes); // The format pads its header with spaces.
  bytes.set(text, 8);
  let at = 8 + headerBytes;
  for (const { data } of kept) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

/**
 * Reads a file's bytes; the tensors are copies.
 *
 * @param path names the file in errors.
 * @throws CheckpointError where the bytes are not a whole safetensors file, or hold another element type.
 */
export function decodeSafeTensors(bytes: Uint8Array, path: string): SafeTensorsFile {
  const header = readHeader(bytes, path);
  const tensors = new Map<string, SafeTensor>();
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(header.entries)) {
    if (name === "__metadata__") metadata = entry as Readonly<Record<string, string>>;
    else tensors.set(name, readTensor(bytes, header.dataStart, name, entry as Entry, path));
  }
  return { tensors, metadata };
}

function readHeader(
  bytes: Uint8Array,
  path: string,
): { entries: Record<string, unknown>; dataStart: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length < 8 ? -1 : Number(view.getBigUint64(0, true));
  if (length < 2 || length > MAX_HEADER_BYTES || 8 + length > bytes.length) {
    throw new CheckpointError(path, "it starts with the size of its header", `${bytes.length} bytes`);
  }
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + 8, length).toString("utf8");
  try {
    return { entries: JSON.parse(text) as Record<string, unknown>, dataStart: 8 + length };
  } catch (cause) {
    throw new CheckpointError(path, "its header is JSON", text.slice(0, 40), { cause });
  }
}

function readTensor(
  bytes: Uint8Array,
  dataStart: number,
  name: string,
  entry: Entry,
  path: string,
): SafeTensor {
  const reader = READERS[entry.dtype];
  if (reader === undefined) {
    throw new CheckpointError(path, `tensor ${name} is F32, BF16 or F16`, String(entry.dtype));
  }
  const [begin, end] = entry.data_offsets;
  const count = entry.shape.reduce((product, size) => product * size, 1);
  const isWhole = begin >= 0 && end - begin === count * reader.bytes && dataStart + end <= bytes.length;
  if (!isWhole) {
    throw new CheckpointError(path, `the data of ${name} lies in the file`, `bytes ${begin} to ${end}`);
  }
  // Not bytes.slice(): on a Buffer that is a view, and views need not be aligned.
  const raw = new Uint8Array(end - begin);
  raw.set(bytes.subarray(dataStart + begin, dataStart + end));
  return { shape: entry.shape, data: reader.read(raw.buffer) };
}

const READERS: Readonly<Record<string, { bytes: number; read: (raw: ArrayBuffer) => Float32Array }>> = {
  F32: { bytes: 4, read: (raw) => new Float32Array(raw) },
  BF16: { bytes: 2, read: widenBfloat16 },
  F16: { bytes: 2, read: (raw) => Float32Array.from(new Uint16Array(raw), float16ToNumber) },
};

/** A bfloat16 is the upper half of a float32. */
function widenBfloat16(raw: ArrayBuffer): Float32Array {
  return new Float32Array(Uint32Array.from(new Uint16Array(raw), (half) => half << 16).buffer);
}

/** IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. */
function float16ToNumber(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
