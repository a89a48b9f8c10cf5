/** Configuration of the trainer, from the environment. */

import os from "node:os";
import { environmentInteger, readEnvironment } from "@hone/config";
import { z } from "zod";

const schema = z.object({
  /** Address of the bus. */
  HONE_NATS_URL: z.string().min(1),
  /** Address of PostgreSQL. */
  HONE_DATABASE_URL: z.string().min(1),
  /** Folder of runs, states and checkpoints; the same for every service. */
  HONE_STATE_DIR: z.string().min(1),
  /** Folder below which paths in run files resolve. */
  HONE_FILES: z.string().min(1).default("."),
  /** Names this process over restarts: its own runs are free to it at once. Default: the host's name. */
  HONE_TRAINER_OWNER: z.string().min(1).default(os.hostname()),
  /** A run of a dead trainer is taken over after this. */
  HONE_TRAINER_LEASE_MS: environmentInteger(500, 600_000).default(5_000),
  /** Threads of the training engine; 0 = as many as there are cores. */
  HONE_TRAINER_THREADS: environmentInteger(0, 256).default(0),
});

export type TrainerConfig = z.output<typeof schema>;

/** @throws {ConfigError} naming every variable that is wrong. */
export function readTrainerConfig(environment: Readonly<Record<string, string | undefined>>): TrainerConfig {
  return readEnvironment(schema, environment);
}
