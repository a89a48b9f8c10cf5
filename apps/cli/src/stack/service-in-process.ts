/**
 * Runs a service in this process, for a debugger. For the stack it behaves like a child process.
 *
 * Only this file loads the code of the services into the command line, and only with --in-process.
 */

import { createWriteStream, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { deadline } from "@hone/core";
import { type ChildExit, identifyProcess, PRIVATE_FILE, StartError } from "@hone/embedded";
import { type ServiceDefinition, StoppingError, startInProcess } from "@hone/service-kit";
import type { Project } from "../project.ts";
import {
  type RunningService,
  SERVICE_GRACE_MS,
  type ServiceSettings,
  START_DEADLINE_MS,
  serviceEnvironment,
} from "./service-process.ts";
import type { ServiceName, ServiceReplica } from "./services.ts";

const DEFINITIONS: Readonly<Record<ServiceName, () => Promise<ServiceDefinition>>> = {
  tracer: async () => (await import("@hone/tracer/service")).tracerService,
  dataset: async () => (await import("@hone/dataset/service")).datasetService,
  judge: async () => (await import("@hone/judge/service")).judgeService,
  "inference-gateway": async () => (await import("@hone/inference-gateway/service")).inferenceGatewayService,
  "agent-rollout": async () => {
    const [{ agentRolloutService }, { installLeanRunContext }] = await Promise.all([
      import("@hone/agent-rollout/service"),
      import("@hone/agents"),
    ]);
    installLeanRunContext(process.env);
    return agentRolloutService;
  },
  trainer: async () => (await import("@hone/trainer/service")).trainerService,
};

/**
 * Starts a service and waits until it is ready.
 * @param httpPort 0 = any free one; the result has the port.
 * @throws {StartError} when it does not become ready.
 */
export async function startServiceInProcess(
  project: Project,
  replica: ServiceReplica,
  settings: ServiceSettings,
  httpPort: number,
  signal: AbortSignal,
): Promise<RunningService> {
  endOnUncaught();
  const { service: kind, name } = replica;
  const logFile = join(project.logs, `${name}.log`);
  mkdirSync(dirname(logFile), { recursive: true });
  const log = createWriteStream(logFile, { flags: "a", mode: PRIVATE_FILE });
  // A log that cannot be written, for example on a full disk, must not end the process.
  log.on("error", () => undefined);
  const environment = { ...process.env, ...serviceEnvironment(project, replica, settings, httpPort) };
  try {
    const service = await startInProcess(await DEFINITIONS[kind](), { environment, sink: log, signal });
    const exited = service.ended.then(({ isClean }): ChildExit => {
      log.end();
      return { code: isClean ? 0 : 1, signal: null };
    });
    const stop = async ({ graceMs = SERVICE_GRACE_MS } = {}) => {
      await service.stop({ graceMs });
      return exited;
    };
    await deadline(`${name} to be ready`, START_DEADLINE_MS, () => service.becameReady, { signal }).catch(
      async (error: unknown) => {
        await stop();
        throw error;
      },
    );
    return {
      name,
      pid: process.pid,
      identity: identifyProcess(process.pid) ?? { pid: process.pid, startedAt: "" },
      logFile,
      httpPort: service.http.port,
      exited,
      stop,
      [Symbol.asyncDispose]: async () => void (await stop()),
    };
  } catch (cause) {
    log.end();
    if (signal.aborted) throw signal.reason;
    throw new StartError(name, `${name} did not start`, "", { cause });
  }
}

let isEnding = false;

/** Ends the process after an uncaught error, because its state is then unknown; errors from stopping a service are ignored. */
function endOnUncaught(): void {
  if (isEnding) return;
  isEnding = true;
  process.on("uncaughtException", (error) => {
    if (error instanceof StoppingError) return;
    process.stderr.write(`uncaught error, ending: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });
}
