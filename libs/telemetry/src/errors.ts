/** Errors of the telemetry package. */

import { TerminalError } from "@hone/core";

/** Telemetry was started twice in one process: for the same service, or outside the scope of one of several. */
export class TelemetryStartedError extends TerminalError {
  constructor(serviceName: string) {
    super(
      "TELEMETRY_STARTED",
      `telemetry for "${serviceName}" runs already in this process: end it before it is started again`,
    );
  }
}
