/**
 * Runs `nats-server` with JetStream as a child process.
 *
 * Everything lies in one folder: its configuration, its log, its pid file and the streams, which survive a restart.
 * It listens on the loopback address only. "Ready" means that a client was served and that JetStream answered.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WaitOptions } from "@hone/core";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { type Child, spawnChild, untilReady } from "./child-process.ts";
import { StartError } from "./errors.ts";
import { freePort, isPortFree, LOOPBACK } from "./free-port.ts";
import { endLeftover } from "./leftover.ts";
import { findNatsServer } from "./nats-binary.ts";
import { isErrno } from "./process-identity.ts";
import { watchStreams } from "./watch-streams.ts";

/** A server that this process started. */
export interface RunningServer extends Child {
  /** What clients connect to. */
  readonly url: string;
  readonly port: number;
}

export interface NatsOptions extends WaitOptions {
  /** Holds all of the server's state; made when it is missing. */
  readonly folder: string;
  /** @default a free one */
  readonly port?: number;
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
export async function launchNats(options: NatsOptions): Promise<RunningServer> {
  const { folder, signal } = options;
  await mkdir(folder, { recursive: true });
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

  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    await writeFile(configFile, configuration(options, port, pidFile));
    const child = await spawnChild({
      name: "nats-server",
      command: binary,
      args: ["-c", configFile],
      cwd: "/",
      env: { GOGC: GARBAGE_PERCENT, ...process.env },
      logFile: join(folder, "nats-server.log"),
      graceMs: STOP_GRACE_MS,
    });
    const url = `nats://${LOOPBACK}:${port}`;
    try {
      await untilReady(child, () => answers(url, child.pid, pidFile), {
        deadlineMs: options.startDeadlineMs ?? DEFAULT_START_DEADLINE_MS,
        signal,
      });
      void watchStreams({ url, folder, child, onTrouble: options.onTrouble ?? (() => undefined) });
      return Object.assign(child, { url, port });
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
async function answers(url: string, pid: number, pidFile: string): Promise<true | undefined> {
  if ((await readPid(pidFile)) !== pid) return undefined;
  const connection = await connect({
    servers: url,
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
