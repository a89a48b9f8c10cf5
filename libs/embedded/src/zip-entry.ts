/**
 * Reads one entry of a ZIP file (a Python wheel is one), by APPNOTE.TXT 6.3: end record -> central directory ->
 * local header -> data, stored or deflated. No ZIP64: the files read here are a few MB.
 */

import { inflateRawSync } from "node:zlib";
import { DownloadError } from "./errors.ts";

const END_RECORD = 0x06054b50;
const CENTRAL_HEADER = 0x02014b50;
const STORED = 0;
const DEFLATED = 8;
/** A server has some 20 MB; a small file that says more is none. */
const MAX_ENTRY_BYTES = 256 * 1024 * 1024;

/**
 * @param isWanted picks the entry by its path within the archive.
 * @throws {DownloadError} when the bytes are no ZIP file or hold no such entry.
 */
export function readZipEntry(zip: Buffer, isWanted: (path: string) => boolean): Buffer {
  const endAt = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (endAt < 0 || zip.readUInt32LE(endAt) !== END_RECORD) {
    throw new DownloadError(
      `Cannot read a ZIP file as it must have an end record: current value is ${zip.length} bytes without one`,
    );
  }
  const numEntries = zip.readUInt16LE(endAt + 10);
  let at = zip.readUInt32LE(endAt + 16);
  const paths: string[] = [];
  for (let entry = 0; entry < numEntries && zip.readUInt32LE(at) === CENTRAL_HEADER; entry++) {
    const pathBytes = zip.readUInt16LE(at + 28);
    const path = zip.toString("utf8", at + 46, at + 46 + pathBytes);
    if (isWanted(path)) return readData(zip, at, path);
    paths.push(path);
    at += 46 + pathBytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  throw new DownloadError(
    `Cannot find an entry as the ZIP file must hold it: current value is ${paths.join(", ")}`,
  );
}

function readData(zip: Buffer, centralAt: number, path: string): Buffer {
  const method = zip.readUInt16LE(centralAt + 10);
  const packedBytes = zip.readUInt32LE(centralAt + 20);
  const localAt = zip.readUInt32LE(centralAt + 42);
  // The local header repeats path and extra field, with lengths of its own.
  const dataAt = localAt + 30 + zip.readUInt16LE(localAt + 26) + zip.readUInt16LE(localAt + 28);
  const packed = zip.subarray(dataAt, dataAt + packedBytes);
  if (method === STORED) return packed;
  if (method === DEFLATED) return inflateRawSync(packed, { maxOutputLength: MAX_ENTRY_BYTES });
  throw new DownloadError(
    `Cannot unpack ${path} as its method must be stored or deflated: current value is ${method}`,
  );
}
