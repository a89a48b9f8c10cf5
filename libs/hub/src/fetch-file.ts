/**
 * Downloads one file from the hub into the cache.
 *
 * F1: a blob under its own name is complete and has its digest; a running download has the suffix `.incomplete`.
 * F2: a download that broke off continues where it ended. If the file then has another digest, it starts over once.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { HubRefusedError, HubUnavailableError } from "./errors.ts";

/** A file as the hub lists it. */
export interface HubFile {
  readonly path: string;
  readonly size: number;
  /** Git's SHA-1 of the blob, or of the pointer if there is a `sha256`. */
  readonly oid: string;
  /** SHA-256 of the content, for large files. */
  readonly sha256: string | undefined;
}

export interface FetchFileOptions {
  readonly model: string;
  readonly url: string;
  /** The `fetch` for the hub, which sends the token only to the hub. */
  readonly fetch: typeof fetch;
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** Called with the number of bytes of each received piece; negative if bytes have to be received again. */
  readonly onBytes: (bytes: number) => void;
}

/** Downloads a blob unless it exists. @throws {HubRefusedError | HubUnavailableError} */
export async function fetchFile(file: HubFile, blob: string, options: FetchFileOptions): Promise<void> {
  if ((await sizeOf(blob)) === file.size) {
    options.onBytes(file.size);
    return;
  }
  await mkdir(path.dirname(blob), { recursive: true });
  const incomplete = `${blob}.incomplete`;
  const kept = await sizeOf(incomplete);
  if (await isFetched(file, incomplete, kept, options)) {
    await rename(incomplete, blob);
    return;
  }
  // F2
  options.onBytes(-file.size);
  if (kept > 0 && (await isFetched(file, incomplete, 0, options))) {
    await rename(incomplete, blob);
    return;
  }
  const problem = `the downloaded ${file.path} does not have the digest ${file.sha256 ?? file.oid}`;
  throw new HubRefusedError(options.model, `${problem} that the hub lists for it`);
}

/** Downloads from `begin` on. @returns whether the file has its digest; if not, it is removed. */
async function isFetched(
  file: HubFile,
  incomplete: string,
  begin: number,
  options: FetchFileOptions,
): Promise<boolean> {
  const kept = begin > file.size ? 0 : begin;
  if (kept < file.size || file.size === 0) await download(file, incomplete, kept, options);
  else options.onBytes(kept);
  if ((await digestOf(file, incomplete)) === (file.sha256 ?? file.oid)) return true;
  await rm(incomplete, { force: true });
  return false;
}

async function download(
  file: HubFile,
  incomplete: string,
  begin: number,
  { model, url, fetch, token, signal, onBytes }: FetchFileOptions,
): Promise<void> {
  const headers = {
    "accept-encoding": "identity",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(begin === 0 ? {} : { range: `bytes=${begin}-` }),
  };
  try {
    const response = await fetch(url, { headers, signal });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw refusalOf(model, file.path, response.status);
    }
    // A server that does not support ranges sends the whole file.
    const at = response.status === 206 ? begin : 0;
    await using target = await open(incomplete, at === 0 ? "w" : "a");
    onBytes(at);
    let received = at;
    for await (const chunk of response.body) {
      received += chunk.length;
      if (received > file.size) break;
      await target.appendFile(chunk);
      onBytes(chunk.length);
    }
    if (received === file.size) return;
    throw new HubUnavailableError(model, `${received} of ${file.size} bytes of ${file.path}`);
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof HubRefusedError || cause instanceof HubUnavailableError || isDiskError(cause)) {
      throw cause;
    }
    const reason = cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause);
    throw new HubUnavailableError(model, `${file.path} broke off (${reason})`, { cause });
  }
}

/** @returns the error for a status of the hub. */
export function refusalOf(model: string, what: string, status: number, cause?: unknown): Error {
  const answer = `status ${status} for ${what}`;
  switch (status) {
    case 401:
    case 403: {
      const problem = `the hub answered with ${answer}; check the name, and that HF_TOKEN allows to read it`;
      return new HubRefusedError(model, problem, { cause });
    }
    case 404: {
      const problem = `the hub does not have it (${answer}); check the name and the revision`;
      return new HubRefusedError(model, problem, { cause });
    }
    default:
      return new HubUnavailableError(model, answer, { cause });
  }
}

async function digestOf(file: HubFile, incomplete: string): Promise<string> {
  const hash: Hash =
    file.sha256 === undefined
      ? createHash("sha1").update(`blob ${file.size}\0`) // Git's digest of a blob.
      : createHash("sha256");
  for await (const chunk of createReadStream(incomplete)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

/** @returns the size of a file; 0 if it does not exist. */
async function sizeOf(file: string): Promise<number> {
  return stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

function isDiskError(error: unknown): boolean {
  return error instanceof Error && "code" in error && "path" in error;
}
