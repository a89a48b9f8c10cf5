/**
 * The environment that every service reads, and the way in which a service adds its own variables.
 *
 * An empty variable counts as absent. The passwords of database and bus come in their URLs, and are given to the clients that
 * need them alone.
 */

import { hostname } from "node:os";
import { resolve } from "node:path";
import { episodesShape, readEnvironment } from "@hone/config";
import { StreamsRole } from "@hone/messaging";
import { LOG_LEVELS, LogLevel } from "@hone/telemetry";
import { z } from "zod";
import { SettingError } from "../errors.ts";
import type { ServerAddress } from "../http/server-address.ts";
import { readSecretSetting } from "./secret-setting.ts";

/** Names of the variables that all services share. */
export const EnvironmentVariable = {
  /** Address of NATS; several, separated by commas. User and password, where needed, stand in the first. */
  natsUrl: "HONE_NATS_URL",
  /** `postgres://` address; for the services that keep rows. */
  databaseUrl: "HONE_DATABASE_URL",
  /** File that holds, or comes to hold, what HONE_NATS_URL would say. */
  natsUrlFile: "HONE_NATS_URL_FILE",
  /** The same for HONE_DATABASE_URL. */
  databaseUrlFile: "HONE_DATABASE_URL_FILE",
  /** `make` the streams that are missing, or `await` the service that makes them (docs/cluster.md). */
  streams: "HONE_STREAMS",
  /** Servers of NATS that hold a copy of each stream. */
  streamReplicas: "HONE_STREAM_REPLICAS",
  /** Largest size of the stream EPISODES, bytes; for whoever makes the streams. */
  episodesMaxBytes: "HONE_EPISODES_MAX_BYTES",
  /** First token of the subjects on which the service hears answers, where the bus keeps services from hearing others'. */
  inboxPrefix: "HONE_NATS_INBOX_PREFIX",
  /** Folder of what the services write: weights, checkpoints. Shared by all that load them. */
  stateDir: "HONE_STATE_DIR",
  /** Folder under which paths in run files resolve. */
  filesDir: "HONE_FILES",
  /** Address on which HTTP listens. */
  httpHost: "HONE_HTTP_HOST",
  /** 0 = any free port; the ready file tells which. */
  httpPort: "HONE_HTTP_PORT",
  /** Names by which clients may call the server, separated by commas; `.svc` allows every name below it. */
  httpAllowedHosts: "HONE_HTTP_ALLOWED_HOSTS",
  /** Written once, atomically, when the service is ready. */
  readyFile: "HONE_READY_FILE",
  logLevel: "HONE_LOG_LEVEL",
  /** Where Hone's tracer takes spans; absent = it gets none. Exporters of OTEL_* come on top (docs/observability.md). */
  tracerUrl: "HONE_TRACER_URL",
  /** Token of the tracer, which the page and its API ask for; sent with the spans that it gets. */
  tracerToken: "HONE_TRACER_TOKEN",
  /** File that holds it, as a mounted secret. */
  tracerTokenFile: "HONE_TRACER_TOKEN_FILE",
  /** Share of traces that are recorded, 0 to 1. */
  traceSampleRatio: "HONE_TRACE_SAMPLE_RATIO",
  /** Which replica this is; letters, digits, `_` and `-`. */
  instanceId: "HONE_INSTANCE_ID",
} as const;

/** What every service is configured with. */
export interface BaseConfig {
  readonly nats: ServerAddress;
  readonly database: ServerAddress | undefined;
  readonly streams: StreamsRole;
  readonly streamReplicas: number;
  /** Undefined = EPISODES keeps the size that it has. */
  readonly episodesMaxBytes: number | undefined;
  readonly inboxPrefix: string | undefined;
  /** Absolute. */
  readonly stateDir: string;
  /** Absolute. */
  readonly filesDir: string;
  readonly httpHost: string;
  readonly httpPort: number;
  /** In lower case. */
  readonly httpAllowedHosts: readonly string[];
  readonly readyFile: string | undefined;
  readonly logLevel: LogLevel;
  readonly tracerUrl: string | undefined;
  readonly tracerToken: string | undefined;
  readonly traceSampleRatio: number;
  readonly instanceId: string;
}

/** Variables as a process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_NATS_URL = "nats://127.0.0.1:4222";
const DEFAULT_STATE_DIR = ".hone";
const MAX_PORT = 65_535;
/** Fits a NATS subject token and a key of a bucket. */
const INSTANCE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** One token of a subject. */
const INBOX_PREFIX = /^[A-Za-z0-9_-]{1,64}$/;
/** A name, or a dot and what ends every name that is meant. */
const HOST_NAME = /^\.?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;
/** NATS' own limit. */
const MAX_STREAM_REPLICAS = 5;

const baseShape = {
  [EnvironmentVariable.natsUrl]: z.string().optional(),
  [EnvironmentVariable.databaseUrl]: z.string().optional(),
  [EnvironmentVariable.natsUrlFile]: z.string().optional(),
  [EnvironmentVariable.databaseUrlFile]: z.string().optional(),
  [EnvironmentVariable.streams]: z.enum(StreamsRole).default(StreamsRole.make),
  [EnvironmentVariable.streamReplicas]: z.coerce.number().int().min(1).max(MAX_STREAM_REPLICAS).default(1),
  ...episodesShape,
  [EnvironmentVariable.inboxPrefix]: z.string().regex(INBOX_PREFIX).optional(),
  [EnvironmentVariable.stateDir]: z.string().default(DEFAULT_STATE_DIR),
  [EnvironmentVariable.filesDir]: z.string().default("."),
  [EnvironmentVariable.httpHost]: z.string().default("127.0.0.1"),
  [EnvironmentVariable.httpPort]: z.coerce.number().int().min(0).max(MAX_PORT).default(0),
  [EnvironmentVariable.httpAllowedHosts]: z
    .string()
    .toLowerCase()
    .transform((text) => text.split(",").map((name) => name.trim()))
    .pipe(z.array(z.string().regex(HOST_NAME, "names without a port, such as hone.example.com or .svc")))
    .default([]),
  [EnvironmentVariable.readyFile]: z.string().optional(),
  [EnvironmentVariable.logLevel]: z.enum(LOG_LEVELS).default(LogLevel.info),
  [EnvironmentVariable.tracerUrl]: z.string().optional(),
  [EnvironmentVariable.tracerToken]: z.string().regex(/^\S+$/, "no spaces").optional(),
  [EnvironmentVariable.tracerTokenFile]: z.string().optional(),
  [EnvironmentVariable.traceSampleRatio]: z.coerce.number().min(0).max(1).default(1),
  [EnvironmentVariable.instanceId]: z.string().regex(INSTANCE_ID).optional(),
};

/**
 * Reads what all services share, with every default.
 * @throws {ConfigError} with every variable that is wrong.
 * @throws {SettingError} for an address that is given twice, and for a secret's file that cannot be read.
 */
export function readBaseConfig(environment: Environment): BaseConfig {
  const read = readEnvironment(z.object(baseShape), environment);
  return {
    nats: addressIn(read, EnvironmentVariable.natsUrl, EnvironmentVariable.natsUrlFile) ?? {
      kind: "known",
      url: DEFAULT_NATS_URL,
    },
    database: addressIn(read, EnvironmentVariable.databaseUrl, EnvironmentVariable.databaseUrlFile),
    streams: read.HONE_STREAMS,
    streamReplicas: read.HONE_STREAM_REPLICAS,
    episodesMaxBytes: read.HONE_EPISODES_MAX_BYTES,
    inboxPrefix: read.HONE_NATS_INBOX_PREFIX,
    stateDir: resolve(read.HONE_STATE_DIR),
    filesDir: resolve(read.HONE_FILES),
    httpHost: read.HONE_HTTP_HOST,
    httpPort: read.HONE_HTTP_PORT,
    httpAllowedHosts: read.HONE_HTTP_ALLOWED_HOSTS,
    readyFile: read.HONE_READY_FILE === undefined ? undefined : resolve(read.HONE_READY_FILE),
    logLevel: read.HONE_LOG_LEVEL,
    tracerUrl: read.HONE_TRACER_URL,
    tracerToken: readSecretSetting(read, EnvironmentVariable.tracerToken),
    traceSampleRatio: read.HONE_TRACE_SAMPLE_RATIO,
    instanceId: read.HONE_INSTANCE_ID ?? ownInstanceId(),
  };
}

/**
 * A server's address, from the variable that holds it or the one that names a file with it.
 * @returns undefined where neither is set.
 * @throws {SettingError} when both are.
 */
export function addressIn(
  read: Readonly<Record<string, unknown>>,
  urlVariable: string,
  fileVariable: string,
): ServerAddress | undefined {
  const url = read[urlVariable];
  const file = read[fileVariable];
  if (typeof file !== "string") return typeof url === "string" ? { kind: "known", url } : undefined;
  if (url === undefined) return { kind: "told", file: resolve(file), variable: fileVariable };
  throw new SettingError(fileVariable, `must be absent where ${urlVariable} is set`, file);
}

/** Host and process id, which no other process that runs now has. */
function ownInstanceId(): string {
  const host = hostname().replace(/[^A-Za-z0-9_-]/g, "-");
  return `${host.slice(0, 48)}-${process.pid}`;
}
