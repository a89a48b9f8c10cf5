/** A trainer on real servers, for tests: started in this process, or in one of its own that can be killed. */

import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type Bus, readOrdered, StreamName } from "@hone/messaging";
import { type RunEvent, RunEventSchema } from "@hone/proto-gen/run";
import { type RunningService, startService } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { readTrainerConfig } from "../config.ts";
import { trainerService } from "../service.ts";

const EXAMPLE = fileURLToPath(new URL("../../../../examples/01-frozen-lake/", import.meta.url));

/** Text of a small run file: 3 steps of 4 groups of 4 on a model that trains in milliseconds. */
export async function runFile(changes: Record<string, unknown> = {}): Promise<string> {
  const tokenizer = await readFile(`${EXAMPLE}tokenizer.json`, "utf8");
  return JSON.stringify({
    name: "small",
    seed: 11,
    model: {
      init: {
        architecture: "qwen3",
        hiddenSize: 16,
        numLayers: 1,
        numHeads: 2,
        tokenizer: { files: { "tokenizer.json": tokenizer } },
      },
    },
    dataset: { train: { source: "environment", environment: "fake", seeds: { from: 0, to: 6 } } },
    agent: { name: "fake" },
    rollout: { tasksPerStep: 4, groupSize: 4, sampling: { maxNewTokens: 4 } },
    trainer: {
      steps: 3,
      epochs: 2,
      minibatches: 2,
      optimizer: { kind: "adamw", learningRate: 0.01 },
    },
    ...changes,
  });
}

/** Addresses of the servers, and the folder for a trainer's state. */
export interface TrainerServers {
  readonly nats: string;
  readonly postgres: string;
  readonly stateDir: string;
}

/** The environment variables of a trainer. */
function trainerEnvironment(servers: TrainerServers) {
  return {
    HONE_NATS_URL: servers.nats,
    HONE_DATABASE_URL: servers.postgres,
    HONE_STATE_DIR: servers.stateDir,
    HONE_FILES: servers.stateDir,
    HONE_INSTANCE_ID: "trainer-under-test",
    HONE_TRAINER_LEASE_MS: "2000",
    HONE_TRAINER_THREADS: "1",
    HONE_TRAINER_MEMORY_MIB: "1024",
  };
}

/** Starts a trainer in this process. */
export function startTrainer(
  servers: TrainerServers,
  changes: Record<string, string> = {},
): Promise<RunningService> {
  const config = readTrainerConfig({ ...trainerEnvironment(servers), ...changes });
  return startService(trainerService, { config, logger: silentLogger() });
}

type KnownKind = Extract<RunEvent["kind"], { case: string }>;
type EventValues = { readonly [Kind in KnownKind as Kind["case"]]: Kind["value"] };

/** The events of a bus so far and from now on. */
export function followEvents(bus: Bus, signal: AbortSignal) {
  const seen: RunEvent[] = [];
  void (async () => {
    const events = readOrdered(bus, RunEventSchema, {
      stream: StreamName.events,
      filter: "hone.v1.event.>",
      signal,
    });
    for await (const { message } of events) seen.push(message);
  })();
  return {
    seen,
    /** Values of the events of one kind, of one run if given. */
    of<K extends keyof EventValues>(kind: K, runId?: string): Array<EventValues[K]> {
      return seen
        .filter((event) => runId === undefined || event.runId === runId)
        .filter((event) => event.kind.case === kind)
        .map((event) => event.kind.value as EventValues[K]);
    },
  };
}

/** How a test starts other processes. */
export interface ProcessHost {
  readonly execPath: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A trainer in a process of its own, started again under the same instance id each time it is killed. */
export class KillableTrainer {
  readonly #host: ProcessHost;
  readonly #environment: Record<string, string>;
  #child: ChildProcess | undefined;
  kills = 0;

  /** @param host the test's own process. */
  constructor(host: ProcessHost, servers: TrainerServers) {
    this.#host = host;
    this.#environment = trainerEnvironment(servers);
  }

  get isAlive(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /**
   * @param logFile takes everything that the trainer logs. @default only errors, to the test's own output
   * @param uid the account under which it runs. @default the test's own
   */
  start({ logFile, uid }: { readonly logFile?: string; readonly uid?: number } = {}): void {
    const main = fileURLToPath(new URL("../main.ts", import.meta.url));
    this.#child = spawn(this.#host.execPath, [main], {
      env: {
        ...this.#host.env,
        ...this.#environment,
        HONE_LOG_LEVEL: logFile === undefined ? "error" : "debug",
      },
      ...(uid !== undefined && { uid }),
      stdio: ["ignore", "ignore", logFile === undefined ? "inherit" : openSync(logFile, "a")],
    });
  }

  /** Kills the process with SIGKILL and starts a new one at once. */
  async killAndRestart(): Promise<void> {
    await this.kill();
    this.kills++;
    this.start();
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await exited;
    this.#child = undefined;
  }
}
