/**
 * Bus and database of a stack: embedded ones, kept running, or those that the environment names.
 *
 * V1: an embedded server is started again on the port that it had first, so its address stays true.
 * V2: that address stands in a file for each user from the moment on that the server answers; services wait for theirs.
 * V3: a server that the environment names is used as it is, and never ended.
 * V4: the streams of an embedded bus are made before anybody is told where it is: of its users only the trainer's may make
 *     streams, and it may be one that an editor starts later.
 */

import { join } from "node:path";
import { readEpisodesMaxBytes } from "@hone/config";
import {
  findNatsServer,
  launchNats,
  launchPostgres,
  type RunningNats,
  type RunningServer,
  type Supervised,
  supervise,
} from "@hone/embedded";
import { connectBus, EPISODES_MAX_BYTES, ensureTopology, makeDurables } from "@hone/messaging";
import type { Project } from "../project.ts";
import { addressFileOf, busUsers, OWNER, removeAddresses, writeAddresses } from "./secrets/bus-users.ts";
import {
  databaseFileOf,
  openToRoles,
  removeDatabaseAddresses,
  withoutLogin,
} from "./secrets/database-roles.ts";
import type { BusAddress, ServerAddress } from "./service-process.ts";
import { isRowKeeper, type ServiceName } from "./services.ts";
import type { StackEvent } from "./stack-event.ts";

export interface StartServersOptions {
  /** Takes each embedded server once it answers. */
  readonly servers: Supervised<RunningServer>[];
  readonly tell: (event: StackEvent) => void;
  readonly signal: AbortSignal;
}

export interface StackDatabase {
  /** For the processes of a service, right away (V2); undefined for one that keeps no rows. */
  addressOf(service: ServiceName): ServerAddress | undefined;
  /** Where it is, without a password, once it answers. */
  readonly url: Promise<string>;
}

export interface StackBus {
  /** For the processes of a service, right away (V2). */
  addressOf(service: ServiceName): BusAddress;
  /** For this command line, once it answers. */
  readonly url: Promise<string>;
}

export interface StackServers {
  readonly nats: StackBus;
  readonly postgres: StackDatabase;
  /** Resolves when nothing is left to be fetched from the network, which takes minutes: no service waits for that. */
  readonly isProgramThere: Promise<unknown>;
}

/** What is done with a server that answers for the first time; resolves when others may be told of it. */
interface KeptServer<Server extends RunningServer> {
  readonly name: string;
  readonly launch: (port: { port?: number }, signal: AbortSignal) => Promise<Server>;
  readonly onReady: (server: Server) => Promise<void>;
}

/** Starts what the environment does not name; returns before it answers. */
export async function startServers(project: Project, options: StartServersOptions): Promise<StackServers> {
  await Promise.all([removeAddresses(project), removeDatabaseAddresses(project)]);
  const { bus, program } = startBus(project, options);
  return { nats: bus, postgres: startDatabase(project, options), isProgramThere: program };
}

function startDatabase(project: Project, options: StartServersOptions): StackDatabase {
  const given = process.env.HONE_DATABASE_URL;
  if (given) {
    return {
      addressOf: (service) => (isRowKeeper(service) ? { url: given } : undefined), // V3
      url: Promise.resolve(withoutLogin(given)),
    };
  }
  const kept = keepRunning(
    {
      name: "postgres",
      launch: (port, signal) => launchPostgres({ folder: join(project.state, "postgres"), ...port, signal }),
      onReady: (server) => openToRoles(project, server, options.signal),
    },
    options,
  );
  return {
    addressOf: (service) => (isRowKeeper(service) ? { file: databaseFileOf(project, service) } : undefined),
    url: kept.then(({ url }) => withoutLogin(url)),
  };
}

function startBus(
  project: Project,
  options: StartServersOptions,
): { readonly bus: StackBus; readonly program: Promise<unknown> } {
  const { tell, signal } = options;
  const given = process.env.HONE_NATS_URL;
  if (given) {
    const url = Promise.resolve(given);
    return {
      bus: { addressOf: () => ({ server: { url: given }, isEmbedded: false }), url }, // V3
      program: Promise.resolve(),
    };
  }
  // As the trainer will: of a wrong value it is better to hear before anything is started.
  const episodesMaxBytes = readEpisodesMaxBytes(process.env) ?? EPISODES_MAX_BYTES;
  const folder = join(project.state, "nats");
  const program = findNatsServer({
    fallbackCacheDir: join(folder, "cache"),
    signal,
    onProgress: (text) => tell({ kind: "fetching", text }),
  });
  const kept = keepRunning<RunningNats>(
    {
      name: "nats-server",
      launch: async (port, launchSignal) => {
        const binary = await program;
        return launchNats({
          folder,
          ...port,
          users: busUsers(),
          binary: binary.path,
          signal: launchSignal,
          onTrouble: (text) => tell({ kind: "progress", text }),
        });
      },
      onReady: async (nats) => {
        await makeStreams(nats, episodesMaxBytes, signal);
        await writeAddresses(project, nats);
      },
    },
    options,
  );
  return {
    bus: {
      addressOf: (service) => ({ server: { file: addressFileOf(project, service) }, isEmbedded: true }),
      url: kept.then(({ url }) => url),
    },
    program,
  };
}

/** V4 */
async function makeStreams(nats: RunningNats, episodesMaxBytes: number, signal: AbortSignal): Promise<void> {
  const bus = await connectBus({ url: nats.urlOf(OWNER), name: "hone up", signal });
  try {
    await ensureTopology(bus, { episodesMaxBytes, signal });
    await makeDurables(bus);
  } finally {
    await bus.close();
  }
}

/** V1, V2. @returns the server as it was when it answered first; its address stays true. */
async function keepRunning<Server extends RunningServer>(
  { name, launch, onReady }: KeptServer<Server>,
  { servers, tell, signal }: StartServersOptions,
): Promise<Server> {
  let latest: Server | undefined;
  let lastReason = "";
  const supervised = await supervise({
    name,
    signal,
    start: async (startSignal) => {
      latest = await launch(latest === undefined ? {} : { port: latest.port }, startSignal);
      return latest;
    },
    onEvent: (event) => {
      if (event.kind === "ended") lastReason = event.reason;
      if (event.kind === "started" && event.restarts > 0) {
        tell({ kind: "restarted", name, reason: lastReason, restarts: event.restarts });
      }
    },
  });
  servers.push(supervised);
  const first = latest;
  if (first === undefined) throw new TypeError(`${name} answers and is not known`);
  await onReady(first);
  return first;
}
