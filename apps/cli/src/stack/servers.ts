/**
 * Bus and database of a stack: embedded ones, kept running, or those that the environment names.
 *
 * V1: an embedded server is started again on the port that it had first, so its address stays true.
 * V2: that address stands in a file from the moment on that the server answers; services wait for it.
 * V3: a server that the environment names is used as it is, and never ended.
 */

import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  findNatsServer,
  launchNats,
  launchPostgres,
  type RunningServer,
  type Supervised,
  supervise,
} from "@hone/embedded";
import type { Project } from "../project.ts";
import type { ServerAddress } from "./service-process.ts";
import type { StackEvent } from "./stack.ts";

export interface StartServersOptions {
  /** Takes each embedded server once it answers. */
  readonly servers: Supervised<RunningServer>[];
  readonly tell: (event: StackEvent) => void;
  readonly signal: AbortSignal;
}

export interface StackServer {
  /** For services, right away (V2). */
  readonly address: ServerAddress;
  /** Once it answers. */
  readonly url: Promise<string>;
}

export interface StackServers {
  readonly nats: StackServer;
  readonly postgres: StackServer;
  /** Resolves when nothing is left to be fetched from the network, which takes minutes: no service waits for that. */
  readonly isProgramThere: Promise<unknown>;
}

type Launch = (port: { port?: number }, signal: AbortSignal) => Promise<RunningServer>;

/** Starts what the environment does not name; returns before it answers. */
export async function startServers(project: Project, options: StartServersOptions): Promise<StackServers> {
  const { tell, signal } = options;
  const fileOf = (name: string) => join(project.ready, `${name}.url`);
  await Promise.all(["nats-server", "postgres"].map((name) => rm(fileOf(name), { force: true })));
  const natsFolder = join(project.state, "nats");
  const givenNats = process.env.HONE_NATS_URL;
  const program =
    givenNats === undefined || givenNats === ""
      ? findNatsServer({
          fallbackCacheDir: join(natsFolder, "cache"),
          signal,
          onProgress: (text) => tell({ kind: "fetching", text }),
        })
      : undefined;
  const start = (name: string, given: string | undefined, launch: Launch): StackServer =>
    given === undefined || given === ""
      ? { address: { file: fileOf(name) }, url: keepRunning(name, fileOf(name), launch, options) }
      : { address: { url: given }, url: Promise.resolve(given) }; // V3
  return {
    nats: start("nats-server", givenNats, async (port, launchSignal) => {
      const binary = await program;
      return launchNats({
        folder: natsFolder,
        ...port,
        ...(binary === undefined ? {} : { binary: binary.path }),
        signal: launchSignal,
        onTrouble: (text) => tell({ kind: "progress", text }),
      });
    }),
    postgres: start("postgres", process.env.HONE_DATABASE_URL, (port, launchSignal) =>
      launchPostgres({ folder: join(project.state, "postgres"), ...port, signal: launchSignal }),
    ),
    isProgramThere: Promise.resolve(program),
  };
}

/** V1, V2. @returns the address. */
async function keepRunning(
  name: string,
  addressFile: string,
  launch: Launch,
  { servers, tell, signal }: StartServersOptions,
): Promise<string> {
  let port: number | undefined;
  let url = "";
  let lastReason = "";
  const supervised = await supervise({
    name,
    signal,
    start: async (startSignal) => {
      const server = await launch(port === undefined ? {} : { port }, startSignal);
      ({ port, url } = server);
      return server;
    },
    onEvent: (event) => {
      if (event.kind === "ended") lastReason = event.reason;
      if (event.kind === "started" && event.restarts > 0) {
        tell({ kind: "restarted", name, reason: lastReason, restarts: event.restarts });
      }
    },
  });
  servers.push(supervised);
  // Appears whole, and for its owner only: it may hold a password.
  await writeFile(`${addressFile}.new`, url, { mode: 0o600 });
  await rename(`${addressFile}.new`, addressFile);
  return url;
}
