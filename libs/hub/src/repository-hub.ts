/**
 * Repositories of the Hugging Face hub as folders of the cache that all Hugging Face programs share:
 *
 *   <kind>s--<owner>--<name>/blobs/<digest>               contents
 *   <kind>s--<owner>--<name>/refs/<revision>              the commit of a branch or tag at its last request
 *   <kind>s--<owner>--<name>/snapshots/<commit>/<file>    links to the contents
 *
 * Only the chosen files are downloaded. The files of a commit never change; more of them may be added later.
 */
import { mkdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { AnswerTooLongError, boundedFetch } from "@hone/core";
import { HubRefusedError, HubUnavailableError } from "./errors.ts";
import { fetchFile, type HubFile, refusalOf } from "./fetch-file.ts";
import { hubFetch } from "./hub-fetch.ts";
import type { HubSettings } from "./settings.ts";

/** What a repository holds. */
export type RepositoryKind = "model" | "dataset";

export interface FetchOptions {
  readonly signal: AbortSignal;
  /** Called at intervals while files are downloaded. */
  readonly onProgress?: (doneBytes: number, totalBytes: number) => void;
}

/** Time limit of an answer that is not a file. */
const ANSWER_TIMEOUT_MS = 30_000;
/** Time limit of a whole listing: each page names the next one, so a hub could go on for ever. */
const LISTING_TIMEOUT_MS = 300_000;
/** A page has a thousand files. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_FILES = 100_000;
/** Shortest time between two reports of progress. */
const PROGRESS_INTERVAL_MS = 1_000;
const COMMIT = /^[0-9a-f]{40}$/;
const SHA256 = /^[0-9a-f]{64}$/;
/** Placeholder for small files, which only have Git's digest. */
const NO_SHA256 = "0".repeat(64);
/** A branch, tag or commit; it becomes a path in the cache. */
const REVISION = /^\w(?!.*\.\.)[\w./-]*$/;
/** The beginning of all tokens of the hub. */
const TOKEN_START = "hf_";
/** `owner/name`, or the name alone of an early model. */
const REPOSITORY_ID = /^[A-Za-z0-9][\w.-]*(\/[A-Za-z0-9][\w.-]*)?$/;

export function isRepositoryId(text: string): boolean {
  return REPOSITORY_ID.test(text) && !text.includes("..") && !text.includes("--");
}

/** Whether a path stays within its folder. */
function isPlainPath(file: string): boolean {
  const isPart = (part: string) => part !== "" && part !== "." && part !== "..";
  return !/[\\\0]/.test(file) && file.split("/").every(isPart);
}

export class RepositoryHub {
  readonly #settings: HubSettings;
  readonly #kind: RepositoryKind;
  readonly #fetch: typeof fetch;

  constructor(settings: HubSettings, kind: RepositoryKind) {
    this.#settings = settings;
    this.#kind = kind;
    this.#fetch = hubFetch(settings.endpoint);
  }

  /**
   * @returns the folder of a repository at a revision; chosen files that the cache lacks are downloaded.
   * @param choose selects files out of all paths; throws if the repository does not have the right ones.
   * @throws {HubRefusedError} when this caller cannot get such a repository, or the cache lacks it and downloads are disabled.
   * @throws {HubUnavailableError} when the hub does not answer or a download broke off; the next call continues it.
   */
  async folderOf(
    name: string,
    revision: string,
    choose: (paths: readonly string[]) => readonly string[],
    options: FetchOptions,
  ): Promise<string> {
    const { cacheDir, endpoint, token, isOffline } = this.#settings;
    checkRequest(name, revision, token);
    const { getRepoFolderName } = await hubClient();
    const folder = path.join(cacheDir, getRepoFolderName({ type: this.#kind, name }));
    if (isOffline) return cachedSnapshot(folder, name, revision);
    const { commit, files } = await this.#list(name, revision, options.signal);
    await keepRef(folder, revision, commit);
    const wanted = new Set(choose(files.map((file) => file.path)));
    const chosen = files.filter((file) => wanted.has(file.path));
    const onBytes = progressOf(chosen, options.onProgress);
    const place = this.#kind === "model" ? name : `${this.#kind}s/${name}`;
    for (const file of chosen) {
      const blob = path.join(folder, "blobs", file.sha256 ?? file.oid);
      const url = `${endpoint}/${place}/resolve/${commit}/${file.path}`;
      await fetchFile(file, blob, {
        model: name,
        url,
        fetch: this.#fetch,
        token,
        signal: options.signal,
        onBytes,
      });
      await link(blob, path.join(folder, "snapshots", commit, file.path));
    }
    return path.join(folder, "snapshots", commit);
  }

  async #list(
    model: string,
    revision: string,
    signal: AbortSignal,
  ): Promise<{ commit: string; files: HubFile[] }> {
    const { datasetInfo, HubApiError, listFiles, modelInfo } = await hubClient();
    const { endpoint: hubUrl, token } = this.#settings;
    const whole = AbortSignal.timeout(LISTING_TIMEOUT_MS);
    const asked = {
      hubUrl,
      ...(token === undefined ? {} : { accessToken: token }),
      fetch: boundedFetch(MAX_ANSWER_BYTES, (input, init) =>
        this.#fetch(input, {
          ...init,
          signal: AbortSignal.any([signal, whole, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
        }),
      ),
    };
    try {
      const info = { ...asked, name: model, revision, additionalFields: ["sha" as const] };
      const { sha } = await (this.#kind === "model" ? modelInfo(info) : datasetInfo(info));
      const files: HubFile[] = [];
      for await (const entry of listFiles({
        ...asked,
        repo: { type: this.#kind, name: model },
        revision: sha,
        // Files of models are at the top of their repository.
        recursive: this.#kind === "dataset",
      })) {
        if (entry.type !== "file" || entry.oid === undefined) continue;
        const { path: name, oid, lfs } = entry;
        if (!isPlainPath(name)) {
          const problem = `the repository lists the file ${JSON.stringify(name)}, whose path leads out of it`;
          throw new HubRefusedError(model, problem);
        }
        const size = lfs?.size ?? entry.size;
        if (!Number.isSafeInteger(size) || size < 0) {
          throw new HubRefusedError(
            model,
            `the hub lists ${name} with the size ${size}, which is not a size`,
          );
        }
        if (files.length === MAX_FILES) {
          throw new HubRefusedError(
            model,
            `the repository has more than ${MAX_FILES} files, which is the limit`,
          );
        }
        files.push({ path: name, size, oid, sha256: lfs?.oid });
      }
      const hasDigests = files.every(
        ({ oid, sha256 }) => COMMIT.test(oid) && SHA256.test(sha256 ?? NO_SHA256),
      );
      if (COMMIT.test(sha) && hasDigests) return { commit: sha, files };
      throw new HubUnavailableError(model, `${hubUrl} answers without digests`);
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof HubUnavailableError || cause instanceof HubRefusedError) throw cause;
      if (cause instanceof AnswerTooLongError) {
        const problem = `a page of the list of its files has more than ${MAX_ANSWER_BYTES} bytes, which is the limit`;
        throw new HubRefusedError(model, problem, { cause });
      }
      if (cause instanceof HubApiError) {
        throw refusalOf(model, `revision ${revision}`, cause.statusCode, cause);
      }
      const reason = cause instanceof Error ? String(cause.cause ?? cause.message) : String(cause);
      throw new HubUnavailableError(model, `${hubUrl} does not answer (${reason})`, { cause });
    }
  }
}

/** Loads the hub's client with the first repository, as it takes 70 ms of the start of three services and most runs need none. */
function hubClient(): Promise<typeof import("@huggingface/hub")> {
  return import("@huggingface/hub");
}

/** Checks names that become part of paths and headers. */
function checkRequest(model: string, revision: string, token: string | undefined): void {
  if (!isRepositoryId(model)) {
    throw new HubRefusedError(model, "the name of a repository must have the form owner/name");
  }
  if (!REVISION.test(revision)) {
    const problem = `the revision must be a branch, a tag or a commit, but is ${JSON.stringify(revision)}`;
    throw new HubRefusedError(model, problem);
  }
  if (token !== undefined && !token.startsWith(TOKEN_START)) {
    throw new HubRefusedError(model, `HF_TOKEN must begin with ${TOKEN_START}, and the given one does not`);
  }
}

async function cachedSnapshot(folder: string, model: string, revision: string): Promise<string> {
  const commit = COMMIT.test(revision)
    ? revision
    : await readFile(path.join(folder, "refs", revision), "utf8").then(
        (text) => text.trim(),
        () => undefined,
      );
  const snapshot = commit === undefined ? undefined : path.join(folder, "snapshots", commit);
  const isThere =
    snapshot !== undefined &&
    (await stat(snapshot).then(
      () => true,
      () => false,
    ));
  if (isThere) return snapshot;
  const problem = `HF_HUB_OFFLINE is set, and the cache (${folder}) does not have the revision ${revision}`;
  throw new HubRefusedError(model, `${problem}; unset it to download the files`);
}

async function keepRef(folder: string, revision: string, commit: string): Promise<void> {
  if (revision === commit) return;
  const ref = path.join(folder, "refs", revision);
  await mkdir(path.dirname(ref), { recursive: true });
  await writeFile(ref, commit);
}

async function link(blob: string, pointer: string): Promise<void> {
  await mkdir(path.dirname(pointer), { recursive: true });
  await rm(pointer, { force: true });
  // The link is relative, so that the cache can be moved.
  await symlink(path.relative(path.dirname(pointer), blob), pointer);
}

function progressOf(
  files: readonly HubFile[],
  onProgress: FetchOptions["onProgress"],
): (bytes: number) => void {
  const totalBytes = files.reduce((sum, { size }) => sum + size, 0);
  let doneBytes = 0;
  let reportedAt = performance.now();
  return function countBytes(bytes) {
    doneBytes += bytes;
    if (performance.now() - reportedAt < PROGRESS_INTERVAL_MS) return;
    reportedAt = performance.now();
    onProgress?.(doneBytes, totalBytes);
  };
}
