/** The configuration of the tracer. */

import { environmentInteger, readEnvironment } from "@hone/config";
import { addressIn, type BaseConfig, type Environment, readBaseConfig } from "@hone/service-kit";
import { z } from "zod";
import { readSinkConfig, type SinkConfig } from "./sinks/sink-config.ts";

export interface TracerConfig extends BaseConfig {
  /** OTLP/HTTP receiver that gets every accepted export too, such as Jaeger's http://127.0.0.1:4318; absent = none. */
  readonly otlpForward: string | undefined;
  /** Jaeger's UI as a browser reaches it, for links to the same trace there; without a slash at its end. Absent = no links. */
  readonly jaegerUrl: string | undefined;
  /** Largest body that the intake accepts, measured after decompression. */
  readonly maxBodyBytes: number;
  /** Most spans that are kept; the oldest are removed. */
  readonly maxSpans: number;
  /** Most rollouts that are kept; the oldest are removed. */
  readonly maxRollouts: number;
  /** Most bytes of spans and rollouts in the database; those of the runs that ended first are removed first. */
  readonly maxBytes: number;
  /** What an hour of the machines that train costs, for the costs of steps; undefined = not known. */
  readonly price: { readonly perHour: number; readonly currency: string } | undefined;
  /** Where the figures of runs go beside the database. */
  readonly sinks: SinkConfig;
}

/** An export of Hone's own services has 250 kB; collectors in front of it may batch more. */
const DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024;
/** These take some 300 MB on disk. */
const DEFAULT_MAX_SPANS = 1_000_000;
/** These take some 300 MB on disk if the episodes are small, as in several runs of the first example. */
const DEFAULT_MAX_ROLLOUTS = 100_000;
/** Enough for 40,000 long episodes of a hundred kilobytes, which is a hundred times what small ones take. */
const DEFAULT_MAX_BYTES = 4 * 1024 ** 3;
/** Enough for a few episodes. */
const MIN_MAX_BYTES = 4 * 1024 ** 2;

/** Enough for a thousand of the dearest nodes. */
const MAX_PRICE = 1_000_000;

/** Names a database for the tracer alone, instead of the one that HONE_DATABASE_URL names. */
const OWN_DATABASE_VARIABLE = "HONE_TRACER_DATABASE_URL";
const OWN_DATABASE_FILE_VARIABLE = "HONE_TRACER_DATABASE_URL_FILE";

const shape = z.object({
  [OWN_DATABASE_VARIABLE]: z.string().optional(),
  [OWN_DATABASE_FILE_VARIABLE]: z.string().optional(),
  HONE_OTLP_FORWARD: z.url({ protocol: /^https?$/ }).optional(),
  HONE_JAEGER_URL: z.url({ protocol: /^https?$/ }).optional(),
  HONE_TRACER_MAX_BODY_BYTES: environmentInteger(1_024, 256 * 1024 * 1024).default(DEFAULT_MAX_BODY_BYTES),
  HONE_TRACER_MAX_SPANS: environmentInteger(0, 1_000_000_000).default(DEFAULT_MAX_SPANS),
  HONE_TRACER_MAX_ROLLOUTS: environmentInteger(0, 1_000_000_000).default(DEFAULT_MAX_ROLLOUTS),
  HONE_TRACER_MAX_BYTES: environmentInteger(MIN_MAX_BYTES, 1024 ** 5).default(DEFAULT_MAX_BYTES),
  HONE_TRACER_PRICE_PER_HOUR: z
    .string()
    .regex(/^\d{1,7}(\.\d{1,6})?$/, "an amount such as 2.40")
    .transform(Number)
    .refine((value) => value <= MAX_PRICE, `at most ${MAX_PRICE}`)
    .optional(),
  HONE_TRACER_CURRENCY: z
    .string()
    .regex(/^[A-Z]{3}$/, "a code of ISO 4217 such as USD")
    .default("USD"),
});

/**
 * @throws {ConfigError} that names every variable that is wrong.
 * @throws {SettingError} for an address that is given twice.
 */
export function readTracerConfig(environment: Environment): TracerConfig {
  const own = readEnvironment(shape, environment);
  const base = readBaseConfig(environment);
  return {
    ...base,
    database: addressIn(own, OWN_DATABASE_VARIABLE, OWN_DATABASE_FILE_VARIABLE) ?? base.database,
    otlpForward: own.HONE_OTLP_FORWARD,
    jaegerUrl: own.HONE_JAEGER_URL?.replace(/\/+$/, ""),
    maxBodyBytes: own.HONE_TRACER_MAX_BODY_BYTES,
    maxSpans: own.HONE_TRACER_MAX_SPANS,
    maxRollouts: own.HONE_TRACER_MAX_ROLLOUTS,
    maxBytes: own.HONE_TRACER_MAX_BYTES,
    price:
      own.HONE_TRACER_PRICE_PER_HOUR === undefined
        ? undefined
        : { perHour: own.HONE_TRACER_PRICE_PER_HOUR, currency: own.HONE_TRACER_CURRENCY },
    sinks: readSinkConfig(environment),
  };
}
