/**
 * The part of MLflow's REST API that the sink needs (https://mlflow.org/docs/latest/api_reference/rest-api.html, version 2.0, which
 * MLflow 3 serves as well; the proxy for artefacts is in mlflow/protos/mlflow_artifacts.proto).
 */

import { z } from "zod";
import { SinkUnavailableError } from "../../errors.ts";
import { sinkRequest } from "../sink-request.ts";

export interface MlflowOptions {
  /** Base address without credentials and without a slash at its end. */
  readonly url: string;
  /** Value of the header Authorization; undefined = the server asks for none. */
  readonly authorization: string | undefined;
  readonly signal: AbortSignal;
}

/** A run as MLflow has it. */
export interface MlflowRun {
  readonly id: string;
  /** `mlflow-artifacts:/…` where the server takes artefacts itself. */
  readonly artifactUri: string;
  readonly tags: ReadonlyMap<string, string>;
}

export interface MlflowBatch {
  readonly metrics?: ReadonlyArray<{ key: string; value: number; timestamp: number; step: number }>;
  readonly params?: ReadonlyArray<{ key: string; value: string }>;
  readonly tags?: ReadonlyArray<{ key: string; value: string }>;
}

/** How MLflow names the ends of runs. */
export type MlflowStatus = "RUNNING" | "FINISHED" | "FAILED" | "KILLED";

const run = z.object({
  info: z.object({ run_id: z.string(), artifact_uri: z.string().default("") }),
  data: z
    .object({ tags: z.array(z.object({ key: z.string(), value: z.string() })).default([]) })
    .default({ tags: [] }),
});
const oneRun = z.object({ run });
const runs = z.object({ runs: z.array(run).default([]) });
const experiments = z.object({
  experiments: z.array(z.object({ experiment_id: z.string(), name: z.string() })).default([]),
});
const created = z.object({ experiment_id: z.string() });
/** A checkpoint's file has gigabytes. */
const UPLOAD_TIMEOUT_MS = 3_600_000;

export class MlflowClient {
  readonly #options: MlflowOptions;

  constructor(options: MlflowOptions) {
    this.#options = options;
  }

  /** The system and its address, for messages. */
  get name(): string {
    return `MLflow at ${this.#options.url}`;
  }

  /** @param name has no quotes, as MLflow's filters know no escapes. @returns the id of an experiment; it is created where it is missing. */
  async experiment(name: string): Promise<string> {
    const found = await this.#post("experiments/search", experiments, {
      max_results: 1,
      filter: `name = '${name}'`,
      view_type: "ACTIVE_ONLY",
    });
    const [first] = found.experiments;
    if (first !== undefined) return first.experiment_id;
    return (await this.#post("experiments/create", created, { name })).experiment_id;
  }

  /** @returns the run that began last of those with these tags; undefined where there is none, or somebody deleted it. */
  async findRun(
    experimentId: string,
    tags: ReadonlyArray<{ key: string; value: string }>,
  ): Promise<MlflowRun | undefined> {
    const found = await this.#post("runs/search", runs, {
      experiment_ids: [experimentId],
      filter: tags.map(({ key, value }) => `tags.\`${key}\` = '${value}'`).join(" AND "),
      run_view_type: "ACTIVE_ONLY",
      order_by: ["attributes.start_time DESC"],
      max_results: 1,
    });
    const [first] = found.runs;
    return first && runOf(first);
  }

  async createRun(options: {
    experimentId: string;
    name: string;
    startTimeMs: number;
    tags: ReadonlyArray<{ key: string; value: string }>;
  }): Promise<MlflowRun> {
    const { experimentId, name, startTimeMs, tags } = options;
    const body = { experiment_id: experimentId, run_name: name, start_time: startTimeMs, tags };
    return runOf((await this.#post("runs/create", oneRun, body)).run);
  }

  /** Writes at most 1,000 metrics, 100 parameters and 100 tags. */
  async logBatch(runId: string, batch: MlflowBatch): Promise<void> {
    await this.#post("runs/log-batch", z.unknown(), { run_id: runId, ...batch });
  }

  /** @param endTimeMs undefined = the run goes on. */
  async setStatus(runId: string, status: MlflowStatus, endTimeMs: number | undefined): Promise<void> {
    await this.#post("runs/update", z.unknown(), { run_id: runId, status, end_time: endTimeMs });
  }

  /** Puts a file into the artefacts of a run whose artefacts the server takes. @param path of a file, with "/" between folders. */
  async putArtifact(run: MlflowRun, path: string, body: NonNullable<RequestInit["body"]>): Promise<void> {
    const root = new URL(run.artifactUri).pathname.replace(/^\/+/, "");
    const place = `${root}/${path}`.split("/").map(encodeURIComponent).join("/");
    await this.#send("PUT", `/api/2.0/mlflow-artifacts/artifacts/${place}`, {
      type: "application/octet-stream",
      body,
      timeoutMs: UPLOAD_TIMEOUT_MS,
    });
  }

  async #post<T>(path: string, schema: z.ZodType<T>, body: object): Promise<T> {
    const text = await this.#send("POST", `/api/2.0/mlflow/${path}`, {
      type: "application/json",
      body: JSON.stringify(body),
    });
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch (cause) {
      throw new SinkUnavailableError(this.name, "its answer is not JSON; is it a server of MLflow?", {
        cause,
      });
    }
    const read = schema.safeParse(answer);
    if (read.success) return read.data;
    throw new SinkUnavailableError(this.name, `its answer to ${path} is not what MLflow answers`, {
      cause: read.error,
    });
  }

  #send(
    method: "POST" | "PUT",
    path: string,
    { type, body, timeoutMs }: { type: string; body: NonNullable<RequestInit["body"]>; timeoutMs?: number },
  ): Promise<string> {
    const { url, authorization, signal } = this.#options;
    return sinkRequest({
      sink: this.name,
      url: `${url}${path}`,
      method,
      headers: { "content-type": type, ...(authorization !== undefined && { authorization }) },
      body,
      signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }
}

function runOf({ info, data }: z.infer<typeof run>): MlflowRun {
  const tags = new Map(data.tags.map(({ key, value }) => [key, value]));
  return { id: info.run_id, artifactUri: info.artifact_uri, tags };
}
