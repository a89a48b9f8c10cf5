/**
 * A service as a process: `main.ts` is one call of this.
 *
 * R1: SIGTERM or SIGINT starts the stop; more of them change nothing.
 * R2: an uncaught error is logged and ends the process at once with exit code 1, as its state cannot be trusted any more;
 *     the supervisor starts it again. Work that the stop itself ended (StoppingError) is no failure.
 * R3: the process always ends by itself, with an exit code that says how.
 * R4: where the log cannot be written, as on a full disk, its lines are lost and the service goes on.
 */

import { flushCompileCache } from "node:module";
import { ConfigError } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { createLogger, type LogSink } from "@hone/telemetry";
import { SettingError, StoppingError } from "../errors.ts";
import type { BaseConfig, Environment } from "../settings/environment.ts";
import type { ServiceDefinition } from "./service.ts";
import { serviceTelemetry } from "./service-telemetry.ts";
import { listenForStop, type SignalSource, type StopReason } from "./signals.ts";
import { DEFAULT_GRACE_MS, type RunningService, startService } from "./start-service.ts";

/** How a service's process ends. */
export const ExitCode = {
  /** It was asked to stop, and everything was drained. */
  ok: 0,
  /** It failed, or could not drain within the grace time; it may be started again. */
  failed: 1,
  /** Its settings are wrong, so starting it again cannot help. */
  badSettings: 2,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The process that the runner runs in. */
export interface ProcessHost extends SignalSource {
  readonly env: Environment;
  /** Where the log goes. */
  readonly stderr: LogSink & { on?(event: "error", listener: (error: Error) => void): unknown };
  exit(code: number): void;
}

export interface RunServiceOptions {
  /** @default process */
  readonly host?: ProcessHost;
  /** For draining and closing together, milliseconds. @default 8_000 */
  readonly graceMs?: number;
}

/**
 * Runs a service until it is told to stop, then ends the process.
 * @example
 * // main.ts
 * await runService({ name: "judge", readConfig: readJudgeConfig, start: createJudge });
 */
export async function runService<Config extends BaseConfig>(
  definition: ServiceDefinition<Config>,
  options: RunServiceOptions = {},
): Promise<void> {
  const { host = process, graceMs = DEFAULT_GRACE_MS } = options;
  host.stderr.on?.("error", () => undefined); // R4
  const asked = Promise.withResolvers<StopReason>();
  const abandonStart = new AbortController();
  let logger = createLogger({ service: definition.name, sink: host.stderr });

  using _listening = listenForStop(host, (reason) => {
    if (reason.kind === "uncaught") {
      if (reason.error instanceof StoppingError) {
        logger.debug("ended by the stop", { error: reason.error });
        return;
      }
      logger.error("uncaught error, ending", { error: reason.error });
      host.exit(ExitCode.failed); // R2
      return;
    }
    logger.info("asked to stop", { signal: reason.signal });
    abandonStart.abort(reason);
    asked.resolve(reason); // R1: later ones find it resolved
  });

  let running: RunningService;
  let flush: () => Promise<void>;
  try {
    const config = definition.readConfig(host.env);
    logger = createLogger({ service: definition.name, level: config.logLevel, sink: host.stderr });
    const telemetry = serviceTelemetry(definition.name, config, logger);
    flush = telemetry.flush;
    running = await startService(definition, {
      config,
      logger,
      signal: abandonStart.signal,
      prepare: telemetry.prepare,
    });
  } catch (error) {
    if (abandonStart.signal.aborted) {
      logger.info("stopped before it had started");
      host.exit(ExitCode.ok);
      return;
    }
    logger.error("cannot start", { error });
    host.exit(isSettingsError(error) ? ExitCode.badSettings : ExitCode.failed);
    return;
  }
  // The cache of compiled code is written now, as it would delay the stop. Without a cache this does nothing.
  running.becameReady.then(flushCompileCache, () => undefined);

  const failure = await Promise.race([
    asked.promise.then(() => undefined),
    running.failed.then((error) => ({ error })),
  ]);
  if (failure !== undefined) logger.error("the service cannot go on", { error: failure.error });
  const report = await running.stop({ graceMs, flush });
  if (!report.isClean) logger.error("not everything ended in time", { problems: report.problems });
  host.exit(failure === undefined && report.isClean ? ExitCode.ok : ExitCode.failed); // R3
}

function isSettingsError(error: unknown): boolean {
  return error instanceof ConfigError || error instanceof SettingError || error instanceof InvalidInputError;
}
