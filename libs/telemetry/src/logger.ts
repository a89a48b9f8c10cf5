/**
 * A small structured logger.
 *
 * One line an event: JSON where a program reads it, a short readable line on a terminal. Every
 * line carries the time, the level, the service and, inside a span, its trace id. Secrets are redacted.
 * Writing never throws and never waits.
 */

import { isSpanContextValid, trace } from "./otel-api.ts";
import { redactText, redactValue } from "./redact.ts";

/** From the gravest to the most talkative. */
export const LogLevel = {
  /** Something failed and someone has to look. */
  error: "error",
  /** Something failed and is dealt with, or a setting has no effect. */
  warn: "warn",
  /** What an operator wants to know about a healthy service: a few lines a minute. */
  info: "info",
  /** Everything that helps to find a fault. */
  debug: "debug",
} as const;
export type LogLevel = (typeof LogLevel)[keyof typeof LogLevel];

export const LOG_LEVELS = Object.values(LogLevel);

/** The fields of a line beside its message. An Error stands under `error`. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  readonly level: LogLevel;
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** A logger whose every line carries these fields too. */
  child(fields: LogFields): Logger;
}

/** Where lines go; `process.stderr` is one. */
export interface LogSink {
  readonly isTTY?: boolean | undefined;
  write(line: string): unknown;
}

export interface LoggerOptions {
  readonly service: string;
  /** Lines above this are left out. @default "info" */
  readonly level?: LogLevel | undefined;
  /** `process.stderr`, as a rule. */
  readonly sink: LogSink;
  /** Fields of every line. */
  readonly fields?: LogFields | undefined;
}

/**
 * @example
 * const logger = createLogger({ service: "judge", level: config.logLevel, sink: process.stderr });
 * logger.info("scored", { episodes: 12 });
 */
export function createLogger(options: LoggerOptions): Logger {
  return new StructuredLogger(
    options.service,
    options.level ?? LogLevel.info,
    options.sink,
    redactFields(options.fields ?? {}),
  );
}

/** A logger that writes nothing: for tests, and for code that was given no logger. */
export function silentLogger(): Logger {
  return new StructuredLogger("silent", LogLevel.error, { write: () => true }, {});
}

class StructuredLogger implements Logger {
  readonly level: LogLevel;
  readonly #service: string;
  readonly #sink: LogSink;
  readonly #fields: LogFields;
  readonly #threshold: number;

  constructor(service: string, level: LogLevel, sink: LogSink, fields: LogFields) {
    this.level = level;
    this.#service = service;
    this.#sink = sink;
    this.#fields = fields;
    this.#threshold = LOG_LEVELS.indexOf(level);
  }

  error(message: string, fields?: LogFields): void {
    this.#write(LogLevel.error, message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write(LogLevel.warn, message, fields);
  }

  info(message: string, fields?: LogFields): void {
    if (this.#threshold >= 2) this.#write(LogLevel.info, message, fields);
  }

  debug(message: string, fields?: LogFields): void {
    if (this.#threshold >= 3) this.#write(LogLevel.debug, message, fields);
  }

  child(fields: LogFields): Logger {
    return new StructuredLogger(this.#service, this.level, this.#sink, {
      ...this.#fields,
      ...redactFields(fields),
    });
  }

  #write(level: LogLevel, message: string, fields: LogFields | undefined): void {
    if (LOG_LEVELS.indexOf(level) > this.#threshold) return;
    const time = new Date();
    const all = fields === undefined ? this.#fields : { ...this.#fields, ...redactFields(fields) };
    const text = redactText(message);
    this.#sink.write(
      this.#sink.isTTY === true
        ? readableLine(time, level, this.#service, text, all)
        : jsonLine(time, level, this.#service, text, all),
    );
  }
}

function redactFields(fields: LogFields): LogFields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, redactValue(name, value)]));
}

function jsonLine(time: Date, level: LogLevel, service: string, message: string, fields: LogFields): string {
  const spanContext = trace.getActiveSpan()?.spanContext();
  const line = {
    time: time.toISOString(),
    level,
    service,
    message,
    ...(spanContext !== undefined &&
      isSpanContextValid(spanContext) && { traceId: spanContext.traceId, spanId: spanContext.spanId }),
    ...fields,
  };
  return `${JSON.stringify(line)}\n`;
}

/** ANSI colours by level: red, yellow, none, grey. */
const LEVEL_COLOURS: Readonly<Record<LogLevel, string>> = {
  error: "\u001b[31m",
  warn: "\u001b[33m",
  info: "",
  debug: "\u001b[90m",
};

function readableLine(
  time: Date,
  level: LogLevel,
  service: string,
  message: string,
  fields: LogFields,
): string {
  const colour = LEVEL_COLOURS[level];
  const head = `${time.toISOString().slice(11, 23)} ${level.padEnd(5)} ${service} ${message}`;
  const tail = Object.entries(fields)
    .map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("");
  return colour === "" ? `${head}${tail}\n` : `${colour}${head}${tail}\u001b[0m\n`;
}
