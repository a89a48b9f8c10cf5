/**
 * Reads one entry of a ZIP file, such as a Python wheel, by APPNOTE.TXT 6.3: end record -> central directory -> local header ->
 * data, stored or deflated. ZIP64 is not supported, as the files read here have a few MB.
 */

import { inflateRawSync } from "node:zlib";
import { DownloadError } from "./errors.ts";

const END_RECORD = 0x06054b50;
const CENTRAL_HEADER = 0x02014b50;
const STORED = 0;
const DEFLATED = 8;
/** A server has some 20 MB; a file that claims much more is not one. */
const MAX_ENTRY_BYTES = 256 * 1024 * 1024;

/**
 * @param isWanted selects the entry by its path within the archive.
 * @throws {DownloadError} when the bytes are not a ZIP file or have no such entry.
 */
export function readZipEntry(zip: Buffer, isWanted: (path: string) => boolean): Buffer {
  const endAt = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (endAt < 0 || zip.readUInt32LE(endAt) !== END_RECORD) {
    throw new DownloadError(`The ${zip.length} downloaded bytes are not a ZIP file: they have no end record`);
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
  throw new DownloadError(`The ZIP file does not contain the wanted entry; it has ${paths.join(", ")}`);
}

function readData(zip: Buffer, centralAt: number, path: string): Buffer {
  const method = zip.readUInt16LE(centralAt + 10);
  const packedBytes = zip.readUInt32LE(centralAt + 20);
  const localAt = zip.readUInt32LE(centralAt + 42);
  // The local header repeats path and extra field, with its own lengths.
  const dataAt = localAt + 30 + zip.readUInt16LE(localAt + 26) + zip.readUInt16LE(localAt + 28);
  const packed = zip.subarray(dataAt, dataAt + packedBytes);
  if (method === STORED) return packed;
  if (method === DEFLATED) return inflateRawSync(packed, { maxOutputLength: MAX_ENTRY_BYTES });
  throw new DownloadError(
    `Cannot unpack ${path}: its compression method is ${method}; only 0 (stored) and 8 (deflated) are supported`,
  );
}
