/**
 * Starts the embedded bus and database of a stack and keeps them running, or uses servers that the environment names.
 *
 * V1: an embedded server is restarted on its first port, so that its address stays valid.
 * V2: once the server answers, its address is written to a file for each user; services wait for their files.
 * V3: a server that the environment names is used as it is, and never stopped.
 * V4: the streams of an embedded bus are created before its address is written. Of the services only the trainer may create
 *     streams, and an editor may start it later than the others.
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
  /** Each embedded server is added to this list once it answers. */
  readonly servers: Supervised<RunningServer>[];
  readonly tell: (event: StackEvent) => void;
  readonly signal: AbortSignal;
}

export interface StackDatabase {
  /** The address for a service, which exists before the server answers (V2); undefined for a service without rows. */
  addressOf(service: ServiceName): ServerAddress | undefined;
  /** Resolves with the address without a password, once the server answers. */
  readonly url: Promise<string>;
}

export interface StackBus {
  /** The address for a service, which exists before the server answers (V2). */
  addressOf(service: ServiceName): BusAddress;
  /** Resolves with the address for this command, once the server answers. */
  readonly url: Promise<string>;
}

export interface StackServers {
  readonly nats: StackBus;
  readonly postgres: StackDatabase;
  /** Resolves when nats-server is installed. Fetching it may take minutes, so services are started only afterwards. */
  readonly isProgramThere: Promise<unknown>;
}

/** A server to keep running. `onReady` is called when it answers for the first time, before its address is published. */
interface KeptServer<Server extends RunningServer> {
  readonly name: string;
  readonly launch: (port: { port?: number }, signal: AbortSignal) => Promise<Server>;
  readonly onReady: (server: Server) => Promise<void>;
}

/** Starts the servers that the environment does not name, and returns before they answer. */
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
  // Read here as the trainer does, so that a wrong value is reported before anything is started.
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

/** Creates the streams (V4). */
async function makeStreams(nats: RunningNats, episodesMaxBytes: number, signal: AbortSignal): Promise<void> {
  const bus = await connectBus({ url: nats.urlOf(OWNER), name: "hone up", signal });
  try {
    await ensureTopology(bus, { episodesMaxBytes, signal });
    await makeDurables(bus);
  } finally {
    await bus.close();
  }
}

/** Starts a server and restarts it when it ends (V1, V2). @returns the server after its first start, whose address stays valid. */
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
