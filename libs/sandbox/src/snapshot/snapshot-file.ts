/**
 * The file format of a snapshot: a key of its sources, a digest of its bytes, and its bytes.
 *
 * The digest detects a file that a broken disk or program changed. It is not a signature: the folder ensures that no other
 * account wrote the file (closed-folder.ts).
 */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { findDeno } from "../deno-process.ts";
import { WheelSet } from "../packages/wheel-set.ts";
import { MAX_SNAPSHOT_BYTES } from "../protocol.ts";
import { readChildFiles } from "../pyodide-files.ts";

/** The number changes with the layout of the file. */
const MAGIC = Buffer.from("hone python snapshot 1\n");
const DIGEST_BYTES = 32;
const HEADER_BYTES = MAGIC.length + 2 * DIGEST_BYTES;
export const MAX_FILE_BYTES = HEADER_BYTES + MAX_SNAPSHOT_BYTES;

/**
 * Identifies what a snapshot was made of, as 64 hexadecimal digits: the program and the files of the child, Deno's version and
 * architecture, Python's memory limit, and the packages that it has imported.
 * @throws {SandboxMissingError} when there is no Deno for this machine.
 */
export async function snapshotKey(maxMemoryBytes: number, wheels: WheelSet = WheelSet.none): Promise<string> {
  const { program, pyodide } = await readChildFiles();
  const deno = await readFile(path.join(path.dirname(findDeno()), "package.json"));
  const hash = createHash("sha256");
  // Each part is preceded by its length, so that different lists of parts never have the same bytes.
  const add = (part: string | Uint8Array) => {
    hash.update(`${Buffer.byteLength(part)}:`).update(part);
  };
  for (const part of [MAGIC, program, deno, process.arch, `${maxMemoryBytes}`, wheels.key]) add(part);
  for (const [name, bytes] of pyodide) {
    add(name);
    add(bytes);
  }
  return hash.digest("hex");
}

/** The parts of the file, in order. */
export function encodeSnapshot(key: string, snapshot: Uint8Array): readonly Uint8Array[] {
  return [MAGIC, Buffer.from(key, "hex"), digestOf(snapshot), snapshot];
}

/** @returns undefined for a file with another layout or key, or one that was truncated or changed. */
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
