/** Reads the configuration of the inference gateway from the environment. */

import { homedir } from "node:os";
import path from "node:path";
import { environmentInteger, type ModelFolders, readEnvironment, readModelFolders } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { Quantization } from "@hone/rl";
import {
  type BaseConfig,
  type Environment,
  readBaseConfig,
  readSecretSetting,
  SettingError,
} from "@hone/service-kit";
import { z } from "zod";
import type { WantedCheckpoint } from "./domain/serving/served-checkpoints.ts";

const MIB = 2 ** 20;
const ENGINE_KINDS = ["onnx", "vllm", "sglang"] as const;

const schema = z.object({
  /** Sequences that run at once, over all models. */
  HONE_INFERENCE_MAX_SEQUENCES: environmentInteger(1, 65_536).default(256),
  /** Further requests that wait; more are refused as busy. */
  HONE_INFERENCE_MAX_WAITING: environmentInteger(1, 1_000_000).default(4_096),
  /** Memory for keys and values of each loaded policy version in MiB; never more than all sequences need at full length. */
  HONE_INFERENCE_CACHE_MIB: environmentInteger(1, 1_048_576).default(512),
  /** How long the prompts of one step may take: other generations stand still meanwhile. */
  HONE_INFERENCE_MAX_STEP_MS: environmentInteger(10, 60_000).default(2_000),
  /** Threads that share one operator; 0 = one for small models, every core for large ones. */
  HONE_INFERENCE_THREADS: environmentInteger(0, 8).default(0),
  /** How models of width 256 and more keep contexts: with `pooled` results are equal bit by bit, `slots` copies less for long contexts. */
  HONE_INFERENCE_WEIGHTS: z.enum(["packed", "measured"]).default("packed"),
  /** Longest time without a reply to a caller that waits. */
  HONE_INFERENCE_HEARTBEAT_MS: environmentInteger(50, 60_000).default(1_500),
  /** How long a request for a version that is not loaded yet waits here before it is refused as behind. */
  HONE_INFERENCE_VERSION_WAIT_MS: environmentInteger(0, 600_000).default(10_000),
  /** Time between two reports of this replica's state; changes are reported at once. */
  HONE_INFERENCE_REPORT_MS: environmentInteger(100, 10_000).default(2_000),
  /** The engine: the embedded one, or an inference server beside this gateway. */
  HONE_INFERENCE_ENGINE: z.enum(ENGINE_KINDS).default("onnx"),
  /** Address of that server. */
  HONE_INFERENCE_ENGINE_URL: z
    .url({ protocol: /^https?$/, error: "an address that begins with http:// or https://" })
    .optional(),
  /** Its API key, if it was started with one. */
  HONE_INFERENCE_ENGINE_API_KEY: z.string().regex(/^\S+$/, "no spaces").optional(),
  /** File that holds it, as a mounted secret. */
  HONE_INFERENCE_ENGINE_API_KEY_FILE: z.string().optional(),
  /** Key of its routes that change weights, if they have their own (SGLang's `--admin-api-key`). */
  HONE_INFERENCE_ENGINE_ADMIN_KEY: z.string().regex(/^\S+$/, "no spaces").optional(),
  /** File that holds it, as a mounted secret. */
  HONE_INFERENCE_ENGINE_ADMIN_KEY_FILE: z.string().optional(),
  /** Longest time that the server may take to load weights. */
  HONE_INFERENCE_ENGINE_LOAD_MS: environmentInteger(1_000, 86_400_000).default(900_000),
  /** Folder for links to the files of a version that the server must read; it sees it under the same path. Absent = below the state folder. */
  HONE_INFERENCE_ENGINE_LINKS_DIR: z.string().startsWith("/", "an absolute path").optional(),
  /** Checkpoints to serve, separated by commas: `[<name>=]<place>`, where a place is a folder or an id of the hub. */
  HONE_INFERENCE_SERVE: z.string().default(""),
  /** How their products are computed: in float32, or in eight bits. Runs say it themselves. @default none */
  HONE_INFERENCE_SERVE_QUANTIZATION: z.enum(Quantization).optional(),
  /** Bearer token of the API; absent = none is needed. */
  HONE_INFERENCE_API_KEY: z.string().regex(/^\S+$/, "no spaces").optional(),
  /** File that holds it, as a mounted secret. */
  HONE_INFERENCE_API_KEY_FILE: z.string().optional(),
});

/** Which engine generates. */
export type EngineConfig =
  | { readonly kind: "onnx" }
  | {
      readonly kind: "vllm" | "sglang";
      readonly url: string;
      readonly apiKey: string | undefined;
      readonly adminKey: string | undefined;
      readonly loadDeadlineMs: number;
      /** Folder for the folders of links that are made for the server (remote/served-folder.ts). */
      readonly viewFolder: string;
    };

export interface InferenceGatewayConfig extends BaseConfig {
  readonly engine: EngineConfig;
  readonly maxSequences: number;
  readonly maxWaiting: number;
  readonly maxCacheBytes: number;
  readonly maxStepMs: number;
  readonly intraOpThreads: number;
  readonly weights: "packed" | "measured";
  readonly heartbeatMs: number;
  readonly versionWaitMs: number;
  readonly reportMs: number;
  readonly checkpoints: readonly WantedCheckpoint[];
  /** How the engine computes the products of these checkpoints. */
  readonly servedQuantization: Quantization;
  readonly apiKey: string | undefined;
  /** The hub of checkpoints that are not folders. */
  readonly hub: HubSettings;
  /** Folders in which checkpoints may be, and the base models of adapters among them. */
  readonly modelFolders: ModelFolders;
}

/**
 * @throws {ConfigError} naming every variable that is wrong.
 * @throws {SettingError} when the file of the key cannot be read.
 */
export function readInferenceGatewayConfig(environment: Environment): InferenceGatewayConfig {
  const read = readEnvironment(schema, environment);
  const base = readBaseConfig(environment);
  const hub = readHubSettings(environment, homedir());
  const checkpoints = readCheckpoints(read.HONE_INFERENCE_SERVE, base.filesDir);
  return {
    ...base,
    engine: readEngine(read, path.join(base.stateDir, "served", base.instanceId)),
    maxSequences: read.HONE_INFERENCE_MAX_SEQUENCES,
    maxWaiting: read.HONE_INFERENCE_MAX_WAITING,
    maxCacheBytes: read.HONE_INFERENCE_CACHE_MIB * MIB,
    maxStepMs: read.HONE_INFERENCE_MAX_STEP_MS,
    intraOpThreads: read.HONE_INFERENCE_THREADS,
    weights: read.HONE_INFERENCE_WEIGHTS,
    heartbeatMs: read.HONE_INFERENCE_HEARTBEAT_MS,
    versionWaitMs: read.HONE_INFERENCE_VERSION_WAIT_MS,
    reportMs: read.HONE_INFERENCE_REPORT_MS,
    checkpoints,
    servedQuantization: read.HONE_INFERENCE_SERVE_QUANTIZATION ?? Quantization.none,
    apiKey: readSecretSetting(read, "HONE_INFERENCE_API_KEY"),
    hub,
    // Folders that the operator names may be anywhere.
    modelFolders: readModelFolders(environment, [base.filesDir, base.stateDir, hub.cacheDir]).and(
      ...checkpoints.map(({ place }) => place).filter((place) => path.isAbsolute(place)),
    ),
  };
}

/** A place that is absolute or begins with "." is a folder, and else an id of the hub. Relative folders are below the project folder. */
function readCheckpoints(text: string, filesDir: string): WantedCheckpoint[] {
  const checkpoints = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [, name, place = ""] = /^(?:([^=/]*)=)?(.*)$/s.exec(entry) ?? [];
      const isFolder = path.isAbsolute(place) || place.startsWith(".");
      const resolved = isFolder ? path.resolve(filesDir, place) : place;
      return { id: name || (isFolder ? path.basename(resolved) : place), place: resolved };
    });
  const twice = checkpoints.find(({ id }, i) => checkpoints.findIndex((other) => other.id === id) !== i);
  if (twice !== undefined) {
    const found = `${text}, where two have the name ${twice.id}`;
    throw new SettingError("HONE_INFERENCE_SERVE", "must give each checkpoint a different name", found);
  }
  return checkpoints;
}

type Variables = z.output<typeof schema>;

/** Refuses settings that the engine would ignore. */
function readEngine(read: Variables, ownViewFolder: string): EngineConfig {
  const { HONE_INFERENCE_ENGINE: kind, HONE_INFERENCE_ENGINE_URL: url } = read;
  const checkAbsent = (variable: keyof Variables, why: string) => {
    const value = read[variable];
    if (value !== undefined && value !== "")
      throw new SettingError(variable, `must be left out, as ${why}`, "set");
  };
  if (kind === "onnx") {
    const why = "HONE_INFERENCE_ENGINE is onnx, which has no server";
    checkAbsent("HONE_INFERENCE_ENGINE_URL", why);
    checkAbsent("HONE_INFERENCE_ENGINE_API_KEY", why);
    checkAbsent("HONE_INFERENCE_ENGINE_ADMIN_KEY", why);
    checkAbsent("HONE_INFERENCE_ENGINE_LINKS_DIR", why);
    return { kind };
  }
  if (url === undefined) {
    throw new SettingError(
      "HONE_INFERENCE_ENGINE_URL",
      `must be the address of the ${kind} server`,
      "absent",
    );
  }
  checkAbsent("HONE_INFERENCE_SERVE", `a gateway of ${kind} serves the run that it claims`);
  checkAbsent("HONE_INFERENCE_SERVE_QUANTIZATION", `a gateway of ${kind} serves no checkpoints`);
  if (kind === "vllm")
    checkAbsent("HONE_INFERENCE_ENGINE_ADMIN_KEY", "vLLM has no key of its own for these routes");
  return {
    kind,
    url,
    apiKey: readSecretSetting(read, "HONE_INFERENCE_ENGINE_API_KEY"),
    adminKey: readSecretSetting(read, "HONE_INFERENCE_ENGINE_ADMIN_KEY"),
    loadDeadlineMs: read.HONE_INFERENCE_ENGINE_LOAD_MS,
    viewFolder: read.HONE_INFERENCE_ENGINE_LINKS_DIR ?? ownViewFolder,
  };
}
