/**
 * Runs PostgreSQL as a child process.
 *
 * P1: the data folder appears by rename after `initdb` succeeded, so a half-initialised one is never taken for data.
 * P2: a server that an earlier start left on the same data is ended first; a `postmaster.pid` of a process that is
 *     no such server is removed.
 * P3: the password is random, lies beside the data, and only the loopback address is listened on: other accounts of
 *     the machine cannot read the database.
 * P4: it is stopped by SIGINT ("fast": sessions end, data is written), then SIGQUIT, then SIGKILL. After either of
 *     the latter the next start recovers from the write-ahead log.
 */

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chown, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WaitOptions } from "@hone/core";
import postgres from "postgres";
import { StartError, StateFolderError } from "../errors.ts";
import type { RunningServer } from "../nats/nats-server.ts";
import { type Account, type Child, spawnChild, untilReady } from "../processes/child-process.ts";
import { freePort, isPortFree, LOOPBACK } from "../processes/free-port.ts";
import { endLeftover } from "../processes/leftover.ts";
import { isErrno } from "../processes/process-identity.ts";
import { runProgram } from "../processes/run-program.ts";
import { postgresAccount } from "./postgres-account.ts";
import { type PostgresPrograms, postgresHome, postgresPrograms } from "./postgres-files.ts";

export interface PostgresOptions extends WaitOptions {
  /** Holds the server's state; made when it is missing. */
  readonly folder: string;
  /** @default a free one */
  readonly port?: number;
  /** Made when it is missing. @default "hone" */
  readonly database?: string;
  /** Forgets what was written when the machine (not the process) fails, and starts faster. For tests. @default false */
  readonly isThrowAway?: boolean;
  /** Until the server is ready, recovery included. @default 60_000 */
  readonly startDeadlineMs?: number;
}

const USER = "hone";
const DEFAULT_START_DEADLINE_MS = 60_000;
const INIT_TIMEOUT_MS = 60_000;
/** A fast shutdown writes a checkpoint; a busy disk may take some seconds for it. */
const STOP_GRACE_MS = 10_000;
const STOP_SIGNALS = ["SIGINT", "SIGQUIT"] as const;
const CONNECT_TIMEOUT_S = 2;
/** Between choosing a free port and listening on it somebody else may take it. */
const PORT_ATTEMPTS = 5;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: LOOPBACK,
  // No socket files: they need a writable folder that all accounts share, and their paths are limited in length.
  unix_socket_directories: "",
  // Six services with small pools, and room for a person with psql.
  max_connections: "100",
  shared_buffers: "64MB",
  logging_collector: "off",
};

const THROW_AWAY_SETTINGS: Readonly<Record<string, string>> = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
};

/**
 * @throws {ProgramMissingError} when npm installed no PostgreSQL for this platform.
 * @throws {StateFolderError} when the folder's data cannot be used.
 * @throws {StartError} when the server does not come up.
 */
export async function launchPostgres(options: PostgresOptions): Promise<RunningServer> {
  const { folder, signal, database = "hone", isThrowAway = false } = options;
  const account = await postgresAccount();
  const programs = await postgresPrograms(account, join(folder, "programs"));
  const home = await postgresHome(folder, account);
  const data = join(home, "data");
  await endEarlierServer(data, signal); // P2
  const password = await readyData(home, programs, account, isThrowAway, signal);
  const settings = { ...SETTINGS, ...(isThrowAway ? THROW_AWAY_SETTINGS : {}) };

  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = await spawnChild({
      name: "postgres",
      command: programs.postgres,
      args: ["-D", data, "-p", String(port), ...flags],
      env: environment(),
      cwd: "/",
      account,
      logFile: join(folder, "postgres.log"),
      stopSignals: STOP_SIGNALS, // P4
      graceMs: STOP_GRACE_MS,
    });
    const server = `postgres://${USER}:${password}@${LOOPBACK}:${port}`;
    try {
      await untilReady(child, () => answers(server, database, child, data), {
        deadlineMs: options.startDeadlineMs ?? DEFAULT_START_DEADLINE_MS,
        signal,
      });
      return Object.assign(child, { url: `${server}/${database}`, port });
    } catch (error) {
      const mayTryAnother = options.port === undefined && attempt < PORT_ATTEMPTS;
      if (mayTryAnother && error instanceof StartError && !(await isPortFree(port))) continue;
      throw error;
    }
  }
}

/** P1, P3. @returns the password. */
async function readyData(
  home: string,
  programs: PostgresPrograms,
  account: Account | undefined,
  isThrowAway: boolean,
  signal: AbortSignal | undefined,
): Promise<string> {
  const data = join(home, "data");
  const passwordFile = join(home, "password");
  if (existsSync(data)) {
    await checkData(data, programs, account);
    return (await readFile(passwordFile, "utf8")).trim();
  }
  const fresh = join(home, "data.new");
  const handOver = join(home, "password.new");
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  const password = randomBytes(18).toString("base64url");
  await writeFile(passwordFile, password, { mode: 0o600 });
  await rm(handOver, { force: true });
  await writeFile(handOver, password, { mode: 0o600 });
  if (account !== undefined) {
    await chown(fresh, account.uid, account.gid);
    await chown(handOver, account.uid, account.gid);
  }
  try {
    const ran = await runProgram(
      programs.initdb,
      [
        ...["--pgdata", fresh, "--username", USER, "--pwfile", handOver, "--auth", "scram-sha-256"],
        // The same sorting and upper case on every machine, whatever locales it has.
        ...[
          "--encoding",
          "UTF8",
          "--locale",
          "C",
          "--locale-provider",
          "builtin",
          "--builtin-locale",
          "C.UTF-8",
        ],
        ...syncFlags(isThrowAway),
      ],
      { account, timeoutMs: INIT_TIMEOUT_MS, signal, env: environment() },
    );
    signal?.throwIfAborted();
    if (ran.code !== 0) {
      throw new StartError(
        "initdb",
        "Cannot start postgres as its data folder must be made: current value is",
        ran.output,
      );
    }
  } finally {
    await rm(handOver, { force: true });
  }
  await rename(fresh, data);
  return password;
}

/** Linux can sync the whole file system at once, which is quicker than each of the thousand files that initdb makes. */
function syncFlags(isThrowAway: boolean): string[] {
  if (isThrowAway) return ["--no-sync"];
  return process.platform === "linux" ? ["--sync-method=syncfs"] : [];
}

/** Data of another account or another major version is an error: mending it by itself could lose it. */
async function checkData(
  data: string,
  programs: PostgresPrograms,
  account: Account | undefined,
): Promise<void> {
  const read = await runProgram("cat", [join(data, "PG_VERSION")], { account, timeoutMs: INIT_TIMEOUT_MS });
  if (read.code !== 0) {
    throw new StateFolderError(
      data,
      `Cannot open the database folder as this account must own it: current value is ${read.output}; it was made by another account, so run as that one, or remove the folder to start anew: ${data}`,
    );
  }
  const told = await runProgram(programs.postgres, ["--version"], { account, timeoutMs: INIT_TIMEOUT_MS });
  const major = /(\d+)/.exec(told.output)?.[1];
  if (read.output === major) return;
  throw new StateFolderError(
    data,
    `Cannot open the database folder as its version must be ${major}: current value is ${read.output}; remove the folder to start anew: ${data}`,
  );
}

/** P2 */
async function endEarlierServer(data: string, signal: AbortSignal | undefined): Promise<void> {
  const pidFile = join(data, "postmaster.pid");
  let text: string;
  try {
    text = await readFile(pidFile, "utf8");
  } catch (error) {
    // EACCES: another account's data; checkData says so in words.
    if (isErrno(error, "ENOENT") || isErrno(error, "EACCES")) return;
    throw error;
  }
  const pid = Number.parseInt(text, 10);
  const found = { commandContains: data, stopSignals: STOP_SIGNALS, graceMs: STOP_GRACE_MS };
  await endLeftover(pid, { ...found, signal });
  await rm(pidFile, { force: true });
}

/** Undefined until it is this server, and not a stranger on the same port, that answers; makes the database. */
async function answers(
  server: string,
  database: string,
  child: Child,
  data: string,
): Promise<true | undefined> {
  const pid = Number.parseInt(await readFile(join(data, "postmaster.pid"), "utf8"), 10);
  if (pid !== child.pid) return undefined;
  const sql = postgres(`${server}/postgres`, {
    max: 1,
    connect_timeout: CONNECT_TIMEOUT_S,
    onnotice: () => undefined,
  });
  try {
    const known = await sql`select 1 from pg_database where datname = ${database}`;
    if (known.length === 0) await sql`create database ${sql(database)}`;
    return true;
  } finally {
    await sql.end({ timeout: CONNECT_TIMEOUT_S });
  }
}

/** Locale and PG* variables of the user must not change what the server does. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}
