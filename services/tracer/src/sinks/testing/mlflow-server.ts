/** Starts a real server of MLflow with its data in a folder, for tests. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { eventually } from "@hone/testing";
import { freePort } from "../../testing/python.ts";
import type { Curves } from "./sink.suite.ts";

export interface MlflowServer extends AsyncDisposable {
  readonly url: string;
  /** The run of an experiment with this name that began last; undefined where there is none. */
  run(experiment: string, name: string): Promise<ShownRun | undefined>;
  curves(runId: string): Promise<Curves>;
  /** The names of the artefacts below a folder. */
  artifacts(runId: string, folder?: string): Promise<readonly string[]>;
  /** Kills the server; start() starts it again with its data. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly params: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly metrics: readonly string[];
}

interface Pair<Value> {
  readonly key: string;
  readonly value: Value;
}

const START_DEADLINE_MS = 120_000;

export async function startMlflow(python: string, folder: string): Promise<MlflowServer> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const args = ["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", String(port), "--workers", "1"];
  const places = [
    "--backend-store-uri",
    `sqlite:///${path.join(folder, "mlflow.db")}`,
    "--artifacts-destination",
    path.join(folder, "artifacts"),
  ];
  let child: ReturnType<typeof spawn> | undefined;

  const get = async (place: string, query: Record<string, string>): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${url}/api/2.0/mlflow/${place}?${new URLSearchParams(query)}`);
    if (!answer.ok) throw new Error(`MLflow answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const search = async (place: string, body: object) => {
    const answer = await fetch(`${url}/api/2.0/mlflow/${place}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`MLflow answered ${answer.status}: ${await answer.text()}`);
    return (await answer.json()) as { experiments?: { experiment_id: string }[]; runs?: FoundRun[] };
  };

  const server: MlflowServer = {
    url,
    async run(experiment, name) {
      const { experiments = [] } = await search("experiments/search", {
        max_results: 1,
        filter: `name = '${experiment}'`,
      });
      const [found] = experiments;
      if (found === undefined) return undefined;
      const { runs = [] } = await search("runs/search", {
        experiment_ids: [found.experiment_id],
        filter: `attributes.run_name = '${name}'`,
        order_by: ["attributes.start_time DESC"],
      });
      return runs[0] && shown(runs[0]);
    },
    async curves(runId) {
      const { run } = (await get("runs/get", { run_id: runId })) as { run: FoundRun };
      const curves: Record<string, [number, number][]> = {};
      for (const name of shown(run).metrics) {
        const { metrics } = (await get("metrics/get-history", {
          run_id: runId,
          metric_key: name,
          max_results: "10000",
        })) as { metrics: { step: number; value: number }[] };
        curves[name] = metrics
          .map(({ step, value }): [number, number] => [step, value])
          .toSorted(([a], [b]) => a - b);
      }
      return curves;
    },
    async artifacts(runId, folderName = "") {
      const found = await get("artifacts/list", { run_id: runId, path: folderName });
      return ((found.files ?? []) as { path: string }[]).map(({ path: name }) => name);
    },
    async kill() {
      if (child?.pid === undefined || child.exitCode !== null) return;
      const ended = once(child, "exit");
      process.kill(-child.pid, "SIGKILL"); // with its workers
      await ended;
    },
    async start() {
      // In a group of its own, as the server has workers that outlive it.
      child = spawn(python, [...args, ...places], { stdio: "ignore", detached: true, cwd: folder });
      await eventually(
        "MLflow to answer",
        async () => (await fetch(`${url}/health`).catch(() => undefined))?.ok === true,
        { deadlineMs: START_DEADLINE_MS },
      );
    },
    [Symbol.asyncDispose]: () => server.kill(),
  };
  await server.start();
  return server;
}

interface FoundRun {
  readonly info: { readonly run_id: string; readonly status: string };
  readonly data: {
    readonly params?: readonly Pair<string>[];
    readonly tags?: readonly Pair<string>[];
    readonly metrics?: readonly Pair<number>[];
  };
}

function shown({ info, data }: FoundRun): ShownRun {
  const record = (pairs: readonly Pair<string>[] = []) =>
    Object.fromEntries(pairs.map(({ key, value }) => [key, value]));
  return {
    id: info.run_id,
    status: info.status,
    params: record(data.params),
    tags: record(data.tags),
    metrics: (data.metrics ?? []).map(({ key }) => key),
  };
}
