/**
 * Runs `nats-server` with JetStream as a child process.
 *
 * Everything lies in one folder, which only its owner may enter: its configuration, its log, its pid file and the streams,
 * which survive a restart. It listens on the loopback address only, and serves nobody without a password: other accounts
 * of the machine reach the port. "Ready" means that a client was served and that JetStream answered.
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
  /** What clients connect to. */
  readonly url: string;
  readonly port: number;
}

/** A `nats-server` that this process started. */
export interface RunningNats extends RunningServer {
  /** What a user connects to, with its name and password. `url` is that of the first one. */
  urlOf(user: string): string;
  /** The first user, for a client that wants name and password by themselves. */
  readonly login: ServerLogin;
}

export interface NatsOptions extends WaitOptions {
  /** Holds all of the server's state; made when it is missing. */
  readonly folder: string;
  /** @default a free one */
  readonly port?: number;
  /** Who is served, and what each may do. @default one user that may do everything */
  readonly users?: readonly [NatsUser, ...NatsUser[]];
  /** Accounts by name; a user that names none is in the one with the streams. @default one for all users */
  readonly accounts?: Readonly<Record<string, NatsAccount>>;
  /** @default found as nats-binary.ts says */
  readonly binary?: string;
  /** Until the server is ready; large streams take a while to be read back. @default 30_000 */
  readonly startDeadlineMs?: number;
  /** Largest message. Larger payloads go to the object store. @default the server's own, 1 MiB */
  readonly maxPayloadBytes?: number;
  /** Port of the server's own HTTP monitoring, such as /varz. @default none */
  readonly monitorPort?: number;
  readonly onProgress?: (line: string) => void;
  /** Told, in words for people, when the server runs and cannot do its work. */
  readonly onTrouble?: (line: string) => void;
}

const DEFAULT_START_DEADLINE_MS = 30_000;
/** nats-server closes its clients and streams in well under a second; the rest is for a busy machine. */
const STOP_GRACE_MS = 5_000;
const CONNECT_TIMEOUT_MS = 2_000;
/**
 * Of Go's collector: it collects when the heap has grown by half instead of to twice its size. The ids by which the server
 * knows messages that come again are most of what it keeps, and grow with the episodes of the last half hour.
 */
const GARBAGE_PERCENT = "50";
/** Between choosing a free port and listening on it somebody else may take it. */
const PORT_ATTEMPTS = 5;

/**
 * @throws {ProgramMissingError} when no nats-server can be found.
 * @throws {StartError} when it does not come up.
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
  // JSON strings are valid here, so that a folder may have any character in its name.
  const lines = [
    `host: ${JSON.stringify(LOOPBACK)}`,
    `port: ${port}`,
    `server_name: "hone"`,
    `pid_file: ${JSON.stringify(pidFile)}`,
    // A client that a broken network hides is noticed after two to three of these, and gets no requests any more.
    `ping_interval: "10s"`,
    "ping_max: 2",
    `jetstream { store_dir: ${JSON.stringify(join(options.folder, "jetstream"))} }`,
  ];
  if (options.maxPayloadBytes !== undefined) lines.push(`max_payload: ${options.maxPayloadBytes}`);
  if (options.monitorPort !== undefined)
    lines.push(`http: ${JSON.stringify(`${LOOPBACK}:${options.monitorPort}`)}`);
  return `${lines.join("\n")}\n`;
}

/** Undefined until it is this server, and not a stranger on the same port, that serves clients with JetStream. */
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
