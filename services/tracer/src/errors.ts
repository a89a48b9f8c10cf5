/** What the tracer throws. */

import { TerminalError } from "@hone/core";

/** A body that was sent to the intake is no such message. The sender must not try again. */
export class BadBodyError extends TerminalError {
  constructor(reason: string, options?: ErrorOptions) {
    super(
      "BAD_BODY",
      `Cannot take the spans as the body must be an OTLP trace export: current value ${reason}`,
      options,
    );
  }
}

/** A body is larger than the intake takes. */
export class BodyTooLargeError extends TerminalError {
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(
      "BODY_TOO_LARGE",
      `Cannot take the spans as a body may have ${maxBytes} bytes: current value is more`,
    );
    this.maxBytes = maxBytes;
  }
}
