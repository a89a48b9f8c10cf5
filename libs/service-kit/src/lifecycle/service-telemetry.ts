/** Telemetry of a service: it starts while the bus is being connected, and is flushed when the service has drained. */

import { type Logger, startTelemetry, type Telemetry } from "@hone/telemetry";
import type { BaseConfig } from "../settings/environment.ts";

/** The part of the grace time that the last spans may take. */
const FLUSH_DEADLINE_MS = 1_500;

export interface ServiceTelemetry {
  /** Starts it; a service's own start waits for this, as its first spans matter. */
  readonly prepare: () => Promise<void>;
  /** Sends the last spans, where it was started. */
  readonly flush: () => Promise<void>;
}

export function serviceTelemetry(name: string, config: BaseConfig, logger: Logger): ServiceTelemetry {
  let telemetry: Telemetry | undefined;
  return {
    prepare: async () => {
      telemetry = await startTelemetry({
        serviceName: name,
        instanceId: config.instanceId,
        tracerUrl: config.tracerUrl,
        tracerToken: config.tracerToken,
        sampleRatio: config.traceSampleRatio,
        logger,
      });
    },
    flush: async () => {
      await telemetry?.shutdown({ deadlineMs: FLUSH_DEADLINE_MS });
    },
  };
}
