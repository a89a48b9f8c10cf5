/**
 * Runs PostgreSQL as a child process.
 *
 * P1: the data folder appears by a rename after `initdb` succeeded, so a half-initialised one is never used.
 * P2: a server that an earlier start left running on the same data is ended first; a `postmaster.pid` of another process is
 *     removed.
 * P3: the password is random and stored beside the data, and the server listens on the loopback address only, so that other
 *     accounts of the machine cannot read the database.
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
  /** The folder for the server's state; created if it is missing. */
  readonly folder: string;
  /** @default a free port */
  readonly port?: number;
  /** The database, created if it is missing. @default "hone" */
  readonly database?: string;
  /** Starts faster, but loses data if the machine (not the process) fails. For tests. @default false */
  readonly isThrowAway?: boolean;
  /** Time limit until the server is ready, including recovery. @default 60_000 */
  readonly startDeadlineMs?: number;
}

const USER = "hone";
const DEFAULT_START_DEADLINE_MS = 60_000;
const INIT_TIMEOUT_MS = 60_000;
/** A fast shutdown writes a checkpoint; a busy disk may take some seconds for it. */
const STOP_GRACE_MS = 10_000;
const STOP_SIGNALS = ["SIGINT", "SIGQUIT"] as const;
const CONNECT_TIMEOUT_S = 2;
/** Another program may take a free port before the server listens on it, so several ports are tried. */
const PORT_ATTEMPTS = 5;

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: LOOPBACK,
  // No socket files, as they need a writable folder that all accounts share, and the length of their paths is limited.
  unix_socket_directories: "",
  // Enough for six services with small pools and a person with psql.
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
 * @throws {StartError} when the server does not start.
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

/** Creates the data folder, or checks an existing one (P1, P3). @returns the password. */
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
        // The same sort order and upper case on every machine, whatever locales it has.
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
        "Cannot start PostgreSQL: initdb could not create its data folder:",
        ran.output,
      );
    }
  } finally {
    await rm(handOver, { force: true });
  }
  await rename(fresh, data);
  return password;
}

/** Linux can sync the whole file system at once, which is faster than syncing each of the thousand files of initdb. */
function syncFlags(isThrowAway: boolean): string[] {
  if (isThrowAway) return ["--no-sync"];
  return process.platform === "linux" ? ["--sync-method=syncfs"] : [];
}

/** Refuses data of another account or another major version, as repairing it automatically could lose it. */
async function checkData(
  data: string,
  programs: PostgresPrograms,
  account: Account | undefined,
): Promise<void> {
  const read = await runProgram("cat", [join(data, "PG_VERSION")], { account, timeoutMs: INIT_TIMEOUT_MS });
  if (read.code !== 0) {
    throw new StateFolderError(
      data,
      `The database folder ${data} cannot be read (${read.output}); another account created it, so run Hone as that account, or remove the folder to start over`,
    );
  }
  const shown = await runProgram(programs.postgres, ["--version"], { account, timeoutMs: INIT_TIMEOUT_MS });
  const major = /(\d+)/.exec(shown.output)?.[1];
  if (read.output === major) return;
  throw new StateFolderError(
    data,
    `The database folder holds data of PostgreSQL ${read.output}, and this is version ${major}; remove the folder to start over: ${data}`,
  );
}

/** Ends a server that an earlier start left running (P2). */
async function endEarlierServer(data: string, signal: AbortSignal | undefined): Promise<void> {
  const pidFile = join(data, "postmaster.pid");
  let text: string;
  try {
    text = await readFile(pidFile, "utf8");
  } catch (error) {
    // EACCES means another account's data, which checkData reports.
    if (isErrno(error, "ENOENT") || isErrno(error, "EACCES")) return;
    throw error;
  }
  const pid = Number.parseInt(text, 10);
  const found = { commandContains: data, stopSignals: STOP_SIGNALS, graceMs: STOP_GRACE_MS };
  await endLeftover(pid, { ...found, signal });
  await rm(pidFile, { force: true });
}

/** Creates the database. @returns true once this server, and not another one on the same port, answers. */
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

/** An environment without the user's locale and PG* variables, which would change the server's behaviour. */
function environment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|LANG)/.test(name));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}
