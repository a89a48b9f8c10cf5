/** The configuration of the trainer. */

import { homedir, totalmem } from "node:os";
import {
  BoundKeys,
  type CodeGate,
  environmentInteger,
  type ModelFolders,
  readCodeGate,
  readEnvironment,
  readModelFolders,
} from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { EPISODES_MAX_BYTES } from "@hone/messaging";
import { type BaseConfig, type Environment, readBaseConfig, SettingError } from "@hone/service-kit";
import { z } from "zod";

export interface TrainerServiceConfig extends BaseConfig {
  /**
   * Another trainer takes over the runs of a dead trainer after this time. A trainer that restarts with the same instance id
   * takes its runs back at once.
   */
  readonly leaseMs: number;
  /** Threads of the embedded training engine; 0 = every core. */
  readonly engineThreads: number;
  /** Memory that the training of a run may use; by default, the container's memory, or else three quarters of the machine's. */
  readonly engineMemoryBytes: number;
  /** How PyTorch workers are run; undefined = this trainer has none. */
  readonly torch: TorchSettings | undefined;
  /** Where pretrained models are downloaded from. */
  readonly hub: HubSettings;
  /** Runs code that run files name, such as a user's advantage algorithm. */
  readonly gate: CodeGate;
  /** Keys of teachers behind an API, bound to their hosts. */
  readonly teacherKeys: BoundKeys;
  /** The folders that pretrained models may be read from. */
  readonly modelFolders: ModelFolders;
}

/** How PyTorch workers are run. */
export interface TorchSettings {
  /** Path of the Python interpreter that has PyTorch. */
  readonly python: string;
  /** auto = use the GPUs if there are any. */
  readonly device: "auto" | "cpu" | "cuda";
  readonly startDeadlineMs: number;
  readonly callDeadlineMs: number;
  /** Number of machines that the workers of a run are spread over, including this one. */
  readonly nodes: number;
  /** Port at which the other nodes connect to this trainer. */
  readonly nodesPort: number;
  /** Environment of the workers: this process's variables without the addresses and secrets of Hone. */
  readonly environment: Environment;
}

/** Long enough to import PyTorch from a slow disk and to connect all workers. */
const DEFAULT_START_DEADLINE_MS = 600_000;
/** Long enough to load a large model or to train on one minibatch of it. */
const DEFAULT_CALL_DEADLINE_MS = 3_600_000;

/** The port that torchrun uses for its own rendezvous by default. */
const DEFAULT_NODES_PORT = 29_400;

/** Short, so that a killed trainer costs only seconds, and long compared with a slow answer of the database. */
const DEFAULT_LEASE_MS = 5_000;

/** The beginning of the names of all variables with keys of teachers. */
const TEACHER_KEY_PREFIX = "HONE_TEACHER_KEY";

const MIB = 2 ** 20;

const shape = z.object({
  HONE_TRAINER_LEASE_MS: environmentInteger(500, 600_000).default(DEFAULT_LEASE_MS),
  HONE_TRAINER_THREADS: environmentInteger(0, 256).default(0),
  HONE_TRAINER_MEMORY_MIB: environmentInteger(0, 16 * 1_024 * 1_024).default(0),
  HONE_TRAINER_PYTHON: z.string().default(""),
  HONE_TRAINER_TORCH_DEVICE: z.enum(["auto", "cpu", "cuda"]).default("auto"),
  HONE_TRAINER_TORCH_START_DEADLINE_MS: environmentInteger(1_000, 3_600_000).default(
    DEFAULT_START_DEADLINE_MS,
  ),
  HONE_TRAINER_TORCH_CALL_DEADLINE_MS: environmentInteger(1_000, 86_400_000).default(
    DEFAULT_CALL_DEADLINE_MS,
  ),
  HONE_TRAINER_NODES: environmentInteger(1, 1_024).default(1),
  HONE_TRAINER_NODES_PORT: environmentInteger(1, 65_535).default(DEFAULT_NODES_PORT),
});

/**
 * @throws {ConfigError} which names every variable that is wrong.
 * @throws {SettingError} when several nodes are configured without PyTorch.
 */
export function readTrainerConfig(environment: Environment): TrainerServiceConfig {
  const own = readEnvironment(shape, environment);
  if (own.HONE_TRAINER_NODES > 1 && own.HONE_TRAINER_PYTHON === "") {
    const rule = "must be 1 without HONE_TRAINER_PYTHON, as only PyTorch workers spread over nodes";
    throw new SettingError("HONE_TRAINER_NODES", rule, String(own.HONE_TRAINER_NODES));
  }
  const base = readBaseConfig(environment);
  const hub = readHubSettings(environment, homedir());
  return {
    ...base,
    // Without the variable the trainer restores the stream's default size; the other services leave the size unchanged.
    episodesMaxBytes: base.episodesMaxBytes ?? EPISODES_MAX_BYTES,
    leaseMs: own.HONE_TRAINER_LEASE_MS,
    engineThreads: own.HONE_TRAINER_THREADS,
    engineMemoryBytes:
      own.HONE_TRAINER_MEMORY_MIB === 0 ? machineMemory() : own.HONE_TRAINER_MEMORY_MIB * MIB,
    torch:
      own.HONE_TRAINER_PYTHON === ""
        ? undefined
        : {
            python: own.HONE_TRAINER_PYTHON,
            device: own.HONE_TRAINER_TORCH_DEVICE,
            startDeadlineMs: own.HONE_TRAINER_TORCH_START_DEADLINE_MS,
            callDeadlineMs: own.HONE_TRAINER_TORCH_CALL_DEADLINE_MS,
            nodes: own.HONE_TRAINER_NODES,
            nodesPort: own.HONE_TRAINER_NODES_PORT,
            environment: withoutOwn(environment),
          },
    hub,
    gate: readCodeGate(environment, base.filesDir),
    teacherKeys: new BoundKeys(TEACHER_KEY_PREFIX, environment, "the trainer"),
    modelFolders: readModelFolders(environment, [base.filesDir, base.stateDir, hub.cacheDir]),
  };
}

/** Removes the variables of Hone and the token of the hub: workers only read files. */
function withoutOwn(environment: Environment): Environment {
  const kept = Object.entries(environment).filter(([name]) => !/^(HONE_|HF_TOKEN|OTEL_)/.test(name));
  return Object.fromEntries(kept);
}

/** Share of a machine without containers that training uses; the generating engine and everything else need the rest. */
const OWN_SHARE = 0.75;

/** @returns the memory that training may use, in bytes: the container's limit, or else a share of the machine's memory. */
function machineMemory(): number {
  const constrained = process.constrainedMemory();
  const shared = Math.floor(OWN_SHARE * totalmem());
  return constrained > 0 && constrained < totalmem() ? constrained : shared;
}
