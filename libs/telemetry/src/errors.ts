/** Errors of the telemetry package. */

import { TerminalError } from "@hone/core";

/** Telemetry was started twice in one process, for no service of several or for the same one. */
export class TelemetryStartedError extends TerminalError {
  constructor(serviceName: string) {
    super(
      "TELEMETRY_STARTED",
      `Cannot start telemetry as it runs already in this process: current value is "${serviceName}"`,
    );
  }
}
