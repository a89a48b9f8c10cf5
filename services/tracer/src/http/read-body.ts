/** Request bodies, read with a bound and unpacked. */

import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { BadBodyError, BodyTooLargeError } from "../errors.ts";

const unzip = promisify(gunzip);

/**
 * Reads a body; it stops at the limit, so a sender cannot fill the memory, neither plainly nor by a small packed body
 * that unpacks to a large one.
 * @returns the bytes as they came, and unpacked.
 * @throws {BodyTooLargeError} above the limit, packed or unpacked.
 * @throws {BadBodyError} for an unknown or broken packing.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
): Promise<{ sent: Uint8Array; body: Uint8Array }> {
  const sent = await readBounded(request, maxBytes);
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "" || encoding === "identity") return { sent, body: sent };
  if (encoding !== "gzip") throw new BadBodyError(`is packed as "${encoding}", and gzip is what is taken`);
  try {
    return { sent, body: await unzip(sent, { maxOutputLength: maxBytes }) };
  } catch (error) {
    if (error instanceof RangeError) throw new BodyTooLargeError(maxBytes);
    throw new BadBodyError("is no sound gzip stream", { cause: error });
  }
}

async function readBounded(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw new BodyTooLargeError(maxBytes);
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.length;
    if (length > maxBytes) throw new BodyTooLargeError(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length);
}
