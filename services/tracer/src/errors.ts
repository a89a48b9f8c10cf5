/** Errors of the tracer. */

import { RetryableError, TerminalError } from "@hone/core";

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

/** What a system for experiments did not take now; the same is sent again. */
export class SinkUnavailableError extends RetryableError {
  /** @param sink the system and its address, without secrets. */
  constructor(sink: string, reason: string, options?: ErrorOptions) {
    super("SINK_UNAVAILABLE", `${sink} did not take the figures of a run: ${reason}`, options);
  }
}

/** What a system for experiments will never take. */
export class SinkRefusedError extends TerminalError {
  /** @param sink the system and its address, without secrets. */
  constructor(sink: string, reason: string, options?: ErrorOptions) {
    super("SINK_REFUSED", `${sink} refused the figures of a run: ${reason}`, options);
  }
}
