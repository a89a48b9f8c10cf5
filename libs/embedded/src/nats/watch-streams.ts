/**
 * Watches whether JetStream is still enabled on a running `nats-server`. When its disk is full the server disables JetStream,
 * and does not enable it again when there is space. It is then ended, so that its supervisor starts it again.
 *
 * V1: only a server that answers but has JetStream disabled is ended; one that does not answer at all is left running.
 * V2: it is ended only once there is space, as a new server could not start before.
 */

import { statfs } from "node:fs/promises";
import { deadline, pause } from "@hone/core";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Child } from "../processes/child-process.ts";
import type { ServerLogin } from "./nats-users.ts";

export interface WatchStreamsOptions {
  readonly server: ServerLogin;
  /** The folder with the server's streams. */
  readonly folder: string;
  readonly child: Child;
  /** Called once with a sentence for people when JetStream is disabled because the disk is full. */
  readonly onTrouble: (line: string) => void;
}

const LOOK_EVERY_MS = 2_000;
/** Number of consecutive checks without JetStream after which it counts as disabled; a busy server may miss one. */
const MAX_MISSED = 3;
const ANSWER_TIMEOUT_MS = 2_000;
/** With less space a new server would soon be in the same state. */
const ROOM_BYTES = 4 * 1024 ** 2;

/** Watches until the server ends. */
export async function watchStreams(options: WatchStreamsOptions): Promise<void> {
  const { server, folder, child, onTrouble } = options;
  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  let missed = 0;
  let isTold = false;
  while (!ended.signal.aborted) {
    await pause(LOOK_EVERY_MS, ended.signal);
    if (ended.signal.aborted) return;
    missed = (await areStreamsOff(server)) ? missed + 1 : 0;
    if (missed < MAX_MISSED) continue;
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize >= ROOM_BYTES) {
      await child.stop();
      return;
    }
    if (!isTold) {
      onTrouble(
        `nats-server has disabled its streams, as the disk of ${folder} is full; free space, and it goes on by itself`,
      );
    }
    isTold = true; // V2
  }
}

/** Whether the server answers but has JetStream disabled (V1). */
async function areStreamsOff(server: ServerLogin): Promise<boolean> {
  try {
    const connection = await connect({
      ...server,
      timeout: ANSWER_TIMEOUT_MS,
      reconnect: false,
      waitOnFirstConnect: false,
    });
    try {
      await deadline("an answer of nats-server", ANSWER_TIMEOUT_MS, () => connection.rtt());
      return !(await keepsStreams(connection));
    } finally {
      await connection.close();
    }
  } catch {
    return false; // it does not answer at all
  }
}

async function keepsStreams(connection: Parameters<typeof jetstreamManager>[0]): Promise<boolean> {
  try {
    const manager = await jetstreamManager(connection, { timeout: ANSWER_TIMEOUT_MS });
    await manager.getAccountInfo();
    return true;
  } catch {
    return false;
  }
}
