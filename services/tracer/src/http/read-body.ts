/** Reads request bodies up to a limit and decompresses them. */

import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import { BadBodyError, BodyTooLargeError } from "../errors.ts";

const unzip = promisify(gunzip);

/**
 * Reads a body. Reading stops at the limit, so a sender cannot fill the memory, not even by a small compressed body that
 * expands to a large one.
 * @returns the bytes as they were sent, and decompressed.
 * @throws {BodyTooLargeError} above the limit, before or after decompression.
 * @throws {BadBodyError} for an unknown encoding or a broken stream.
 */
export async function readBody(
  request: Request,
  maxBytes: number,
): Promise<{ sent: Uint8Array; body: Uint8Array }> {
  const sent = await readLimited(request, maxBytes);
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding === "" || encoding === "identity") return { sent, body: sent };
  if (encoding !== "gzip")
    throw new BadBodyError(`has the content encoding "${encoding}", and only gzip is accepted`);
  try {
    return { sent, body: await unzip(sent, { maxOutputLength: maxBytes }) };
  } catch (error) {
    if (error instanceof RangeError) throw new BodyTooLargeError(maxBytes);
    throw new BadBodyError("is a broken gzip stream", { cause: error });
  }
}

async function readLimited(request: Request, maxBytes: number): Promise<Uint8Array> {
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
