/** What the trainer is configured with. */

import { homedir, totalmem } from "node:os";
import { environmentInteger, readEnvironment } from "@hone/config";
import { type HubSettings, readHubSettings } from "@hone/hub";
import { type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
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
  /** Where pretrained models come from. */
  readonly hub: HubSettings;
}

/** Short, so that a killed trainer costs seconds; long against a slow database. */
const DEFAULT_LEASE_MS = 5_000;

const MIB = 2 ** 20;

const shape = z.object({
  HONE_TRAINER_LEASE_MS: environmentInteger(500, 600_000).default(DEFAULT_LEASE_MS),
  HONE_TRAINER_THREADS: environmentInteger(0, 256).default(0),
  HONE_TRAINER_MEMORY_MIB: environmentInteger(0, 16 * 1_024 * 1_024).default(0),
});

/** @throws {ConfigError} with every variable that is wrong. */
export function readTrainerConfig(environment: Environment): TrainerServiceConfig {
  const own = readEnvironment(shape, environment);
  return {
    ...readBaseConfig(environment),
    leaseMs: own.HONE_TRAINER_LEASE_MS,
    engineThreads: own.HONE_TRAINER_THREADS,
    engineMemoryBytes:
      own.HONE_TRAINER_MEMORY_MIB === 0 ? machineMemory() : own.HONE_TRAINER_MEMORY_MIB * MIB,
    hub: readHubSettings(environment, homedir()),
  };
}

/** Of the machine, or of the container where that is less. */
function machineMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
}
