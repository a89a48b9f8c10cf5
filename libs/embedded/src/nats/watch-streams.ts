/**
 * Watches whether a running `nats-server` still keeps its streams: one whose disk was full turns them off, and leaves
 * them off when there is room again. It is then ended, so that its supervisor starts it anew.
 *
 * V1: only a server that answers, and says nothing for its streams, is ended; one that stands still is left alone.
 * V2: it is ended once there is room: without, a new one could not start.
 */

import { statfs } from "node:fs/promises";
import { deadline, pause } from "@hone/core";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Child } from "../processes/child-process.ts";
import type { ServerLogin } from "./nats-users.ts";

export interface WatchStreamsOptions {
  readonly server: ServerLogin;
  /** Where the server keeps its streams. */
  readonly folder: string;
  readonly child: Child;
  /** Told once when the streams are off for want of room, in words for people. */
  readonly onTrouble: (line: string) => void;
}

const LOOK_EVERY_MS = 2_000;
/** Looks in a row without streams after which they are off: a busy server may miss one. */
const MAX_MISSED = 3;
const ANSWER_TIMEOUT_MS = 2_000;
/** A server that starts with less is soon where it was. */
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
        `nats-server has no streams as the disk of ${folder} is full: free some, and it goes on by itself`,
      );
    }
    isTold = true; // V2
  }
}

/** V1 */
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
