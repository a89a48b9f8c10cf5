/** What the trainer is configured with. */

import { homedir, totalmem } from "node:os";
import { environmentInteger, type ModelFolders, readEnvironment, readModelFolders } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { EPISODES_MAX_BYTES } from "@hone/messaging";
import { type BaseConfig, type Environment, readBaseConfig, SettingError } from "@hone/service-kit";
import { z } from "zod";

export interface TrainerServiceConfig extends BaseConfig {
  /**
   * A dead trainer's runs are taken over after this by another one. A trainer that comes back under its instance id
   * takes them at once.
   */
  readonly leaseMs: number;
  /** Threads of the embedded training engine; 0 = every core. */
  readonly engineThreads: number;
  /** Memory that the training of a run may take; default: all that the machine or the container has. */
  readonly engineMemoryBytes: number;
  /** Where PyTorch workers are run; undefined = this trainer has none. */
  readonly torch: TorchSettings | undefined;
  /** Where pretrained models come from. */
  readonly hub: HubSettings;
  /** Where pretrained models may lie. */
  readonly modelFolders: ModelFolders;
}

/** How PyTorch workers are run. */
export interface TorchSettings {
  /** The interpreter that has PyTorch. */
  readonly python: string;
  /** auto = the GPUs where there are some. */
  readonly device: "auto" | "cpu" | "cuda";
  readonly startDeadlineMs: number;
  readonly callDeadlineMs: number;
  /** Machines that the workers of a run spread over, this one among them. */
  readonly nodes: number;
  /** Where the other nodes find this trainer. */
  readonly nodesPort: number;
  /** What the workers get of this process's environment: nothing that names Hone's servers or holds its secrets. */
  readonly environment: Environment;
}

/** Importing PyTorch and meeting, on a cold disk. */
const DEFAULT_START_DEADLINE_MS = 600_000;
/** Loading or training a minibatch of a large model. */
const DEFAULT_CALL_DEADLINE_MS = 3_600_000;

/** The port that torchrun's own rendezvous is known by. */
const DEFAULT_NODES_PORT = 29_400;

/** Short, so that a killed trainer costs seconds; long against a slow database. */
const DEFAULT_LEASE_MS = 5_000;

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
 * @throws {ConfigError} with every variable that is wrong.
 * @throws {SettingError} where there are several nodes and no PyTorch.
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
    // Without the variable the stream gets its default size back; other services leave it as the trainer made it.
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
    modelFolders: readModelFolders(environment, [base.filesDir, base.stateDir, hub.cacheDir]),
  };
}

/** What is not Hone's own, nor a token of the hub: workers read files only. */
function withoutOwn(environment: Environment): Environment {
  const kept = Object.entries(environment).filter(([name]) => !/^(HONE_|HF_TOKEN|OTEL_)/.test(name));
  return Object.fromEntries(kept);
}

/** Of a machine without containers: the generating engine, which holds the model too, and all else need the rest. */
const OWN_SHARE = 0.75;

/** What training may take of the machine, or of the container where that is less. */
function machineMemory(): number {
  const constrained = process.constrainedMemory();
  const shared = Math.floor(OWN_SHARE * totalmem());
  return constrained > 0 && constrained < totalmem() ? constrained : shared;
}
