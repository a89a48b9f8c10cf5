/** The settings of the sinks for metrics. Run files cannot name one: where figures and keys go is the operator's decision. */

import path from "node:path";
import { readEnvironment } from "@hone/config";
import { type Environment, readSecretSetting, SettingError } from "@hone/service-kit";
import { z } from "zod";

export interface SinkConfig {
  /** Folder of TensorBoard's event files. */
  readonly tensorboardDir: string | undefined;
  readonly mlflow: MlflowConfig | undefined;
  readonly otlpMetrics: OtlpMetricsConfig | undefined;
}

export interface MlflowConfig {
  /** Without credentials and without a slash at its end. */
  readonly url: string;
  readonly authorization: string | undefined;
  readonly experiment: string;
  readonly uploadsCheckpoints: boolean;
}

export interface OtlpMetricsConfig {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

const url = z.url({ protocol: /^https?$/ });
const shape = z.object({
  HONE_TENSORBOARD_DIR: z.string().optional(),
  HONE_MLFLOW_URL: url.optional(),
  HONE_MLFLOW_TOKEN: z.string().optional(),
  HONE_MLFLOW_TOKEN_FILE: z.string().optional(),
  HONE_MLFLOW_EXPERIMENT: z
    .string()
    .regex(/^[^'"`\\]{1,200}$/, "1 to 200 characters without quotes")
    .default("hone"),
  HONE_MLFLOW_CHECKPOINTS: z.enum(["none", "last"]).default("none"),
  HONE_OTLP_METRICS_URL: url.optional(),
  HONE_OTLP_METRICS_HEADERS: z.string().optional(),
  HONE_OTLP_METRICS_HEADERS_FILE: z.string().optional(),
});

/**
 * @throws {ConfigError} that names every variable that is wrong.
 * @throws {SettingError} for a file with a secret that cannot be read.
 */
export function readSinkConfig(environment: Environment): SinkConfig {
  const read = readEnvironment(shape, environment);
  const token = readSecretSetting(read, "HONE_MLFLOW_TOKEN");
  const headers = readSecretSetting(read, "HONE_OTLP_METRICS_HEADERS");
  return {
    tensorboardDir: read.HONE_TENSORBOARD_DIR && path.resolve(read.HONE_TENSORBOARD_DIR),
    mlflow:
      read.HONE_MLFLOW_URL === undefined
        ? undefined
        : {
            ...withoutCredentials(read.HONE_MLFLOW_URL, token),
            experiment: read.HONE_MLFLOW_EXPERIMENT,
            uploadsCheckpoints: read.HONE_MLFLOW_CHECKPOINTS === "last",
          },
    otlpMetrics:
      read.HONE_OTLP_METRICS_URL === undefined
        ? undefined
        : {
            url: read.HONE_OTLP_METRICS_URL,
            headers: headersOf(headers ?? ""),
          },
  };
}

/** MLflow takes a token, or the user and password of an address such as http://user:password@mlflow:5000. */
function withoutCredentials(
  address: string,
  token: string | undefined,
): { readonly url: string; readonly authorization: string | undefined } {
  const parsed = new URL(address);
  const { username, password } = parsed;
  parsed.username = "";
  parsed.password = "";
  const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString(
    "base64",
  );
  const own = username === "" ? undefined : `Basic ${basic}`;
  return {
    url: parsed.href.replace(/\/+$/, ""),
    authorization: token === undefined ? own : `Bearer ${token}`,
  };
}

/** Reads `name=value,name=value` with percent-encoded values, as OTEL_EXPORTER_OTLP_HEADERS has them. */
function headersOf(text: string): Record<string, string> {
  const pairs = text.split(",").filter((pair) => pair.trim() !== "");
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1)
        throw new SettingError(
          "HONE_OTLP_METRICS_HEADERS",
          "must be name=value, several separated by commas",
          "a secret that is not shown",
        );
      return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())];
    }),
  );
}
