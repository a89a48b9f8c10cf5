/**
 * One of several services in one process, as for a debugger: it does what `runService` does, without a process of its own.
 *
 * B1: everything that the service starts runs in a scope of its own, so that its spans carry its name.
 * B2: a service that cannot go on stops by itself, and `ended` resolves; the process and its other services go on.
 */

import { createLogger, inOwnScope, type LogSink } from "@hone/telemetry";
import type { BaseConfig, Environment } from "../settings/environment.ts";
import type { HttpAddress, ServiceDefinition } from "./service.ts";
import { serviceTelemetry } from "./service-telemetry.ts";
import { type StopOptions, startService } from "./start-service.ts";

export interface StartInProcessOptions {
  readonly environment: Environment;
  /** Takes the log. */
  readonly sink: LogSink;
  /** Gives the start up. */
  readonly signal: AbortSignal;
}

export interface InProcessService {
  readonly http: HttpAddress;
  /** Resolves when it was ready for the first time. */
  readonly becameReady: Promise<void>;
  /** Resolves when it has ended. `isClean`: the end was asked for and everything was drained. Never rejects. */
  readonly ended: Promise<{ readonly isClean: boolean }>;
  stop(options?: Pick<StopOptions, "graceMs">): Promise<void>;
}

/**
 * Starts a service and returns when it is started, ready or not.
 * @throws {ConfigError | SettingError} when its settings are wrong, and what its start throws.
 */
export function startInProcess<Config extends BaseConfig>(
  definition: ServiceDefinition<Config>,
  options: StartInProcessOptions,
): Promise<InProcessService> {
  return inOwnScope(() => start(definition, options)); // B1
}

async function start<Config extends BaseConfig>(
  definition: ServiceDefinition<Config>,
  { environment, sink, signal }: StartInProcessOptions,
): Promise<InProcessService> {
  const { name } = definition;
  const config = definition.readConfig(environment);
  const logger = createLogger({ service: name, level: config.logLevel, sink });
  const { prepare, flush } = serviceTelemetry(name, config, logger);
  const running = await startService(definition, { config, logger, signal, prepare }).catch(async (error) => {
    await flush();
    throw error;
  });
  const ended = Promise.withResolvers<{ isClean: boolean }>();
  let isStopping = false;
  const stop = async (isAsked: boolean, graceMs?: number): Promise<void> => {
    const isFirst = !isStopping;
    isStopping = true;
    const report = await running.stop({ flush, ...(graceMs !== undefined && { graceMs }) });
    if (isFirst) ended.resolve({ isClean: isAsked && report.isClean });
  };
  void running.failed.then((error) => {
    if (isStopping) return;
    logger.error("the service cannot go on", { error });
    return stop(false); // B2
  });
  return {
    http: running.http,
    becameReady: running.becameReady,
    ended: ended.promise,
    stop: ({ graceMs } = {}) => stop(true, graceMs),
  };
}
