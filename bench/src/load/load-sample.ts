/** Takes a sample of a stack under load: memory and CPU of each process, and the sizes of queues. */

import type { TestStack } from "@hone/integration-tests/support";
import { consumerBacklog, DurableName, rolloutQueues, StreamName } from "@hone/messaging";
import { cpuTimesOf } from "../measure/process-times.ts";
import { familyBytes, peakBytes, residentBytes } from "./resident-memory.ts";

/** Processes of a stack that are not services. */
const SERVERS = ["nats-server", "postgres"];

/** Every process of a running stack. */
export function processesOf(stack: TestStack): readonly string[] {
  return [...stack.serviceProcesses().toReversed(), ...SERVERS];
}

export interface LoadSample {
  /** Seconds since the load began. */
  readonly seconds: number;
  /** Jobs that agent-rollout works on, and jobs that are not delivered yet. */
  readonly inFlight: number;
  readonly waitingJobs: number;
  /** Jobs in work that were delivered more than once. As no process dies, there should be none. */
  readonly redelivered: number;
  /** Episodes that the judge has not scored yet, and that the tracer has not stored yet. */
  readonly unscored: number;
  readonly unstored: number;
  /** Episodes scored so far, of all runs. */
  readonly episodes: number;
  readonly processes: Readonly<Record<string, ProcessSample>>;
}

export interface ProcessSample {
  readonly pid: number;
  readonly memoryBytes: number;
  /** The peak so far; for PostgreSQL, which is many processes, the current size. */
  readonly peakBytes: number;
  /** CPU time since the start of the process. */
  readonly cpuMs: number;
}

/** @param beganAt `performance.now()` when the load began. @throws {BusUnavailableError} */
export async function takeSample(
  { bus, pidOf }: TestStack,
  processes: readonly string[],
  beganAt: number,
): Promise<LoadSample> {
  const [{ jobs, episodes: finished }, scored] = await Promise.all([
    rolloutQueues(bus),
    consumerBacklog(bus, StreamName.episodes, DurableName.scoredEpisodes),
  ]);
  // The stream holds a finished and a scored episode for each rollout.
  const { state } = await bus.manager.streams.info(StreamName.episodes);
  const unscored = finished.pending + finished.inWork;
  const pids = Object.fromEntries(processes.map((name) => [name, pidOf(name)]));
  const cpu = cpuTimesOf(pids);
  return {
    seconds: (performance.now() - beganAt) / 1_000,
    inFlight: jobs.inWork,
    waitingJobs: jobs.pending,
    redelivered: jobs.redelivered,
    unscored,
    unstored: scored.pending + scored.inWork,
    episodes: Math.floor((state.last_seq - unscored) / 2),
    processes: Object.fromEntries(
      processes.map((name) => {
        const pid = pids[name]!;
        const isFamily = name === "postgres";
        const memoryBytes = (isFamily ? familyBytes(pid) : residentBytes(pid)) ?? 0;
        const most = isFamily ? memoryBytes : (peakBytes(pid) ?? 0);
        return [name, { pid, memoryBytes, peakBytes: most, cpuMs: cpu[name] ?? 0 }];
      }),
    ),
  };
}
