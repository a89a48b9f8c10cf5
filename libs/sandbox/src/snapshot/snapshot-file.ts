/**
 * A snapshot as a file: what it was made of, a digest of its bytes, its bytes.
 *
 * The digest finds a file that a broken disk or program changed. It is no signature: that nobody else wrote the file is what its
 * folder is for (closed-folder.ts).
 */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { findDeno } from "../deno-process.ts";
import { MAX_SNAPSHOT_BYTES } from "../protocol.ts";
import { readChildFiles } from "../pyodide-files.ts";

/** Another number for another layout of the file. */
const MAGIC = Buffer.from("hone python snapshot 1\n");
const DIGEST_BYTES = 32;
const HEADER_BYTES = MAGIC.length + 2 * DIGEST_BYTES;
export const MAX_FILE_BYTES = HEADER_BYTES + MAX_SNAPSHOT_BYTES;

/**
 * What a snapshot was made of, as 64 hexadecimal digits: the program and the files of the child, Deno's version and machine, and the
 * bound on Python's memory.
 * @throws {SandboxMissingError} where there is no Deno.
 */
export async function snapshotKey(maxMemoryBytes: number): Promise<string> {
  const { program, pyodide } = await readChildFiles();
  const deno = await readFile(path.join(path.dirname(findDeno()), "package.json"));
  const hash = createHash("sha256");
  // Each with its length, so that no two lists of parts are the same bytes.
  const add = (part: string | Uint8Array) => {
    hash.update(`${Buffer.byteLength(part)}:`).update(part);
  };
  for (const part of [MAGIC, program, deno, process.arch, `${maxMemoryBytes}`]) add(part);
  for (const [name, bytes] of pyodide) {
    add(name);
    add(bytes);
  }
  return hash.digest("hex");
}

/** The parts of the file, in their order. */
export function encodeSnapshot(key: string, snapshot: Uint8Array): readonly Uint8Array[] {
  return [MAGIC, Buffer.from(key, "hex"), digestOf(snapshot), snapshot];
}

/** @returns undefined for a file of another layout or key, one that was cut, and one whose bytes changed. */
export function decodeSnapshot(key: string, file: Buffer): Uint8Array | undefined {
  const { header, digest } = {
    header: file.subarray(0, HEADER_BYTES - DIGEST_BYTES),
    digest: file.subarray(HEADER_BYTES - DIGEST_BYTES, HEADER_BYTES),
  };
  const snapshot = file.subarray(HEADER_BYTES);
  if (!header.equals(Buffer.concat([MAGIC, Buffer.from(key, "hex")]))) return undefined;
  return digest.equals(digestOf(snapshot)) ? snapshot : undefined;
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
