/**
 * Runs `nats-server` with JetStream as a child process.
 *
 * All its files are in one folder, which only its owner may enter: its configuration, its log, its pid file and the streams,
 * which survive a restart. It listens on the loopback address only and requires a password, as other accounts of the machine
 * can reach the port. It counts as ready once a client could connect and JetStream answered.
 */

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WaitOptions } from "@hone/core";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { StartError } from "../errors.ts";
import { PRIVATE_FILE, privateFolder } from "../private-files.ts";
import { type Child, spawnChild, untilReady } from "../processes/child-process.ts";
import { freePort, isPortFree, LOOPBACK } from "../processes/free-port.ts";
import { endLeftover } from "../processes/leftover.ts";
import { isErrno } from "../processes/process-identity.ts";
import { findNatsServer } from "./nats-binary.ts";
import {
  type NatsAccount,
  type NatsUser,
  natsUsers,
  passwordOf,
  type ServerLogin,
  usersBlock,
  WATCHER,
} from "./nats-users.ts";
import { watchStreams } from "./watch-streams.ts";

/** A server that this process started. */
export interface RunningServer extends Child {
  /** The address for clients. */
  readonly url: string;
  readonly port: number;
}

/** A `nats-server` that this process started. */
export interface RunningNats extends RunningServer {
  /** The address for a user, with its name and password. `url` is that of the first user. */
  urlOf(user: string): string;
  /** The first user, for a client that takes name and password separately. */
  readonly login: ServerLogin;
}

export interface NatsOptions extends WaitOptions {
  /** The folder for all of the server's state; created if it is missing. */
  readonly folder: string;
  /** @default a free port */
  readonly port?: number;
  /** The users and their rights. @default one user with all rights */
  readonly users?: readonly [NatsUser, ...NatsUser[]];
  /** Accounts by name; a user without an account is in the one with the streams. @default one account for all users */
  readonly accounts?: Readonly<Record<string, NatsAccount>>;
  /** @default the one that nats-binary.ts finds */
  readonly binary?: string;
  /** Time limit until the server is ready; reading large streams takes a while. @default 30_000 */
  readonly startDeadlineMs?: number;
  /** Largest message; larger payloads go to the object store. @default the server's own default, 1 MiB */
  readonly maxPayloadBytes?: number;
  /** Port of the server's own HTTP monitoring, such as /varz. @default none */
  readonly monitorPort?: number;
  readonly onProgress?: (line: string) => void;
  /** Called with a sentence for people when the server runs but cannot work. */
  readonly onTrouble?: (line: string) => void;
}

const DEFAULT_START_DEADLINE_MS = 30_000;
/** nats-server closes its clients and streams within a second; the rest is for a busy machine. */
const STOP_GRACE_MS = 5_000;
const CONNECT_TIMEOUT_MS = 2_000;
/**
 * A setting of Go's garbage collector: it collects when the heap has grown by half instead of doubled. Most of the heap are the
 * ids by which the server recognises duplicates, and they grow with the episodes of the last half hour.
 */
const GARBAGE_PERCENT = "50";
/** Another program may take a free port before the server listens on it, so several ports are tried. */
const PORT_ATTEMPTS = 5;

/**
 * @throws {ProgramMissingError} when no nats-server can be found.
 * @throws {StartError} when it does not start.
 */
export async function launchNats(options: NatsOptions): Promise<RunningNats> {
  const { folder, signal } = options;
  await privateFolder(folder);
  const configFile = join(folder, "nats-server.conf");
  const pidFile = join(folder, "nats-server.pid");
  const leftover = await readPid(pidFile);
  if (leftover !== undefined) {
    const found = { commandContains: configFile, stopSignals: ["SIGTERM"], graceMs: STOP_GRACE_MS } as const;
    await endLeftover(leftover, { ...found, signal });
  }
  const binary =
    options.binary ??
    (
      await findNatsServer({
        fallbackCacheDir: join(folder, "cache"),
        signal,
        ...(options.onProgress === undefined ? {} : { onProgress: options.onProgress }),
      })
    ).path;

  const users = await natsUsers(folder, options.users);
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const text = `${configuration(options, port, pidFile)}${usersBlock(users, options.accounts)}`;
    await writeFile(`${configFile}.new`, text, { mode: PRIVATE_FILE });
    await rename(`${configFile}.new`, configFile);
    const child = await spawnChild({
      name: "nats-server",
      command: binary,
      args: ["-c", configFile],
      cwd: "/",
      env: { GOGC: GARBAGE_PERCENT, ...process.env },
      logFile: join(folder, "nats-server.log"),
      graceMs: STOP_GRACE_MS,
    });
    const urlOf = (name: string) => `nats://${name}:${passwordOf(users, name)}@${LOOPBACK}:${port}`;
    const loginOf = (user: string): ServerLogin => ({
      servers: `${LOOPBACK}:${port}`,
      user,
      pass: passwordOf(users, user),
    });
    const watcher = loginOf(WATCHER);
    try {
      await untilReady(child, () => answers(watcher, child.pid, pidFile), {
        deadlineMs: options.startDeadlineMs ?? DEFAULT_START_DEADLINE_MS,
        signal,
      });
      void watchStreams({
        server: watcher,
        folder,
        child,
        onTrouble: options.onTrouble ?? (() => undefined),
      });
      return Object.assign(child, { url: urlOf(users[0].name), urlOf, login: loginOf(users[0].name), port });
    } catch (error) {
      const mayTryAnother = options.port === undefined && attempt < PORT_ATTEMPTS;
      if (mayTryAnother && error instanceof StartError && !(await isPortFree(port))) continue;
      throw error;
    }
  }
}

function configuration(options: NatsOptions, port: number, pidFile: string): string {
  // JSON strings are valid in the configuration, so that the folder's name may contain any character.
  const lines = [
    `host: ${JSON.stringify(LOOPBACK)}`,
    `port: ${port}`,
    `server_name: "hone"`,
    `pid_file: ${JSON.stringify(pidFile)}`,
    // A client behind a broken network is noticed after two to three of these intervals, and gets no more requests then.
    `ping_interval: "10s"`,
    "ping_max: 2",
    `jetstream { store_dir: ${JSON.stringify(join(options.folder, "jetstream"))} }`,
  ];
  if (options.maxPayloadBytes !== undefined) lines.push(`max_payload: ${options.maxPayloadBytes}`);
  if (options.monitorPort !== undefined)
    lines.push(`http: ${JSON.stringify(`${LOOPBACK}:${options.monitorPort}`)}`);
  return `${lines.join("\n")}\n`;
}

/** @returns true once this server, and not another one on the same port, answers clients with JetStream. */
async function answers(server: ServerLogin, pid: number, pidFile: string): Promise<true | undefined> {
  if ((await readPid(pidFile)) !== pid) return undefined;
  const connection = await connect({
    ...server,
    timeout: CONNECT_TIMEOUT_MS,
    reconnect: false,
    waitOnFirstConnect: false,
  });
  try {
    const manager = await jetstreamManager(connection, { timeout: CONNECT_TIMEOUT_MS });
    await manager.getAccountInfo();
    return true;
  } finally {
    await connection.close();
  }
}

async function readPid(pidFile: string): Promise<number | undefined> {
  try {
    const pid = Number((await readFile(pidFile, "utf8")).trim());
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}
