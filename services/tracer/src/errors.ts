/** Errors of the tracer. */

import { TerminalError } from "@hone/core";

/** A body that was sent to the intake is not an OTLP trace export. The sender must not send it again. */
export class BadBodyError extends TerminalError {
  constructor(reason: string, options?: ErrorOptions) {
    super(
      "BAD_BODY",
      `the spans are refused: the body must be an OTLP trace export, but it ${reason}`,
      options,
    );
  }
}

/** A body is larger than the intake accepts. */
export class BodyTooLargeError extends TerminalError {
  readonly maxBytes: number;

  constructor(maxBytes: number) {
    super(
      "BODY_TOO_LARGE",
      `the spans are refused: the body has more than ${maxBytes} bytes, which is the limit (HONE_TRACER_MAX_BODY_BYTES)`,
    );
    this.maxBytes = maxBytes;
  }
}

/** A file of the page is no TypeScript whose types can be removed; the service does not start. */
export class PageSourceError extends TerminalError {
  constructor(reason: string, options?: ErrorOptions) {
    super("PAGE_SOURCE", `the web page cannot be read: ${reason}`, options);
  }
}
