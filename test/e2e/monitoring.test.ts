/** The chart's dashboard and alerts, against the /metrics of a stack that trains, and with a real Prometheus where there is one. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { stringify } from "yaml";
import { CHART, findHelm, type Manifest, render } from "../chart/helm.ts";
import { runToEnd } from "../support/follow.ts";
import { dashboardQueries, metricsIn } from "../support/inspect/promql.ts";
import { serviceUrl } from "../support/inspect/scrape.ts";
import { lakeRun } from "../support/lake-run.ts";
import { SERVICES, startStack, type TestStack } from "../support/stack.ts";

/** Labels that Prometheus adds to what it scrapes, and those of buckets. */
const TARGET_LABELS = ["pod", "namespace", "job", "instance", "le"];
/** Metrics that a short run without trouble does not have, with their labels. */
const SELDOM: Readonly<Record<string, readonly string[]>> = {
  hone_run_waiting_seconds: ["run", "owner"],
  hone_messages_dead_total: ["consumer"],
  hone_messages_failed_total: ["consumer"],
  hone_retries_total: ["part"],
  // Of vLLM's V1 engine; the fake server in services/inference-gateway/src/remote/testing has the same.
  "vllm:kv_cache_usage_perc": ["engine", "model_name"],
  "vllm:num_requests_running": ["engine", "model_name"],
  "vllm:num_requests_waiting": ["engine", "model_name"],
};
const RUN = { name: "watched", steps: 12, tasksPerStep: 4, minibatches: 1, warmStartTasks: 20, evalTasks: 2 };
const DASHBOARDS = path.join(CHART, "files", "dashboards");

const helm = await findHelm();
const skip = helm.kind === "missing" ? helm.why : false;
const skipProgram = (name: string) =>
  spawnSync(name, ["--version"]).status === 0
    ? false
    : `no ${name}: install Debian's package prometheus, or a release of Prometheus, into PATH`;

describe("the chart's dashboard and alerts", { timeout: 300_000, skip }, () => {
  let stack: TestStack;
  let folder: TemporaryFolder;
  let prometheus: ChildProcess | undefined;
  let address = "";
  let groups: Manifest[] = [];
  /** Labels of each metric that any scrape had. */
  const seen = new Map<string, Set<string>>();

  before(async () => {
    folder = await temporaryFolder("monitoring");
    const program = helm.kind === "found" ? helm.program : "";
    const rules = (await render(program, { profile: "observability" })).find(
      ({ kind }) => kind === "PrometheusRule",
    );
    groups = rules?.spec.groups ?? assert.fail("no PrometheusRule");
    await writeFile(path.join(folder.path, "rules.yaml"), stringify({ groups }));
    stack = await startStack();
    if (skipProgram("prometheus") === false) {
      ({ child: prometheus, address } = await startPrometheus(folder.path, stack));
    }
    await runToEnd(stack, await lakeRun(RUN), {
      deadlineMs: 150_000,
      onEvent: async () => {
        for (const service of SERVICES) note(seen, await metricsOf(stack, service));
      },
    });
  });
  after(async () => {
    if (prometheus !== undefined) {
      const ended = once(prometheus, "exit");
      prometheus.kill("SIGTERM");
      await ended;
    }
    await stack?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  const alerts = () => groups.flatMap(({ rules }): Manifest[] => rules);
  const queries = () => [...dashboardQueries(DASHBOARDS), ...alerts().map(({ expr }): string => expr)];

  test("read only metrics and labels that the services have", () => {
    for (const { query, metric, labels } of queries().flatMap(metricsIn)) {
      const own = seen.get(metric) ?? new Set(SELDOM[metric]);
      assert.ok(own.size > 0 || seen.has(metric), `${metric} in ${query}`);
      const allowed = [...own, ...TARGET_LABELS];
      // A label of `by` may be that of another metric in the same query.
      const others = metricsIn(query).flatMap((each) => [
        ...(seen.get(each.metric) ?? SELDOM[each.metric] ?? []),
      ]);
      for (const label of labels)
        assert.ok(allowed.includes(label) || others.includes(label), `${label} of ${metric} in ${query}`);
    }
    assert.ok(queries().length > 30);
  });

  test("the alerts are rules that promtool accepts", { skip: skipProgram("promtool") }, () => {
    const { status, stderr } = spawnSync(
      "promtool",
      ["check", "rules", path.join(folder.path, "rules.yaml")],
      {
        encoding: "utf8",
      },
    );
    assert.equal(status, 0, stderr);
  });

  test("the alerts fire when they should, and not before", { skip: skipProgram("promtool") }, async () => {
    const series = (name: string, values: string) => ({ series: name, values });
    const file = path.join(folder.path, "alerts.yaml");
    const alert = (alertname: string, eval_time: string, labels?: Record<string, string>) => ({
      alertname,
      eval_time,
      exp_alerts: labels === undefined ? [] : [{ exp_labels: { severity: "warning", ...labels } }],
    });
    const fired = {
      rule_files: ["rules.yaml"],
      evaluation_interval: "1m",
      tests: [
        {
          interval: "1m",
          input_series: [
            series('hone_run_waiting_seconds{run="lake-1",owner="judge"}', "0+60x30"),
            series('hone_run_last_step_timestamp_seconds{run="lake-1"}', "0x200"),
            series('hone_run_last_step_timestamp_seconds{run="paused-1"}', "0x200"),
            series('hone_run_phase{run="paused-1",phase="paused"}', "1x200"),
            series('hone_run_mismatch_mean{run="lake-1"}', "0.01x20 0.5x40"),
            series('hone_consumer_pending{consumer="agent-rollout"}', "0x10 45000x20"),
            series('hone_consumer_pending{consumer="tracer-events-mlflow"}', "5000x60"),
            series('hone_consumer_pending{consumer="tracer-events"}', "5000x60"),
            series('vllm:kv_cache_usage_perc{pod="gateway-0"}', "0.99x30"),
            series('hone_service_ready{service="judge",pod="judge-0"}', "1x10 0x20"),
          ],
          alert_rule_test: [
            alert("HoneRunWaits", "15m"),
            alert("HoneRunWaits", "18m", { run: "lake-1", owner: "judge" }),
            alert("HoneRunMakesNoStep", "119m"),
            alert("HoneRunMakesNoStep", "125m", { run: "lake-1" }),
            alert("HoneMismatchHigh", "25m"),
            alert("HoneMismatchHigh", "35m", { run: "lake-1" }),
            alert("HoneQueueNearlyFull", "12m"),
            alert("HoneQueueNearlyFull", "20m", {}),
            alert("HoneSinkBehind", "20m", { consumer: "tracer-events-mlflow" }),
            alert("HoneEngineCacheFull", "15m", { pod: "gateway-0" }),
            alert("HoneServiceNotReady", "12m"),
            alert("HoneServiceNotReady", "20m", { service: "judge", pod: "judge-0" }),
          ],
        },
      ],
    };
    // Texts are not compared, so those of the rules are left out.
    const bare = groups.map(({ name, rules }) => ({
      name,
      rules: rules.map(({ annotations: _, ...rule }: Manifest) => rule),
    }));
    await writeFile(path.join(folder.path, "rules.yaml"), stringify({ groups: bare }));
    await writeFile(file, stringify(fired));
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" });
    assert.equal(status, 0, `${stdout}${stderr}`);
  });

  test("a real Prometheus that scrapes the stack answers every query", {
    skip: skipProgram("prometheus"),
  }, async () => {
    for (const query of queries()) {
      const { status, data } = await ask(address, query);
      assert.equal(status, "success", query);
      const isSeldom = metricsIn(query).some(({ metric }) => metric in SELDOM);
      const isAlert = alerts().some(({ expr }) => expr === query);
      if (!isSeldom && !isAlert) assert.ok(data.result.length > 0, `nothing for ${query}`);
    }
  });
});

async function metricsOf(stack: TestStack, service: string): Promise<string> {
  const answer = await fetch(`${serviceUrl(stack, service)}/metrics`, {
    signal: AbortSignal.timeout(10_000),
  });
  return answer.text();
}

/** Adds what a text of metrics has to the labels by metric. */
function note(seen: Map<string, Set<string>>, text: string): void {
  for (const line of text.split("\n")) {
    const [, name, labels = ""] = /^([\w:]+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = seen.get(name) ?? new Set();
    seen.set(name, known);
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
  }
}

interface Answer {
  readonly status: string;
  readonly data: { readonly result: readonly unknown[] };
}

/** The series of the last minutes: a run's own end with it. */
async function ask(address: string, query: string): Promise<Answer> {
  const end = Date.now() / 1_000;
  const range = { query, start: String(end - 240), end: String(end), step: "5" };
  const answer = await fetch(`${address}/api/v1/query_range?${new URLSearchParams(range)}`);
  return (await answer.json()) as Answer;
}

/** Starts a Prometheus that scrapes every service once a second. */
async function startPrometheus(
  folder: string,
  stack: TestStack,
): Promise<{ child: ChildProcess; address: string }> {
  const config = {
    global: { scrape_interval: "1s" },
    scrape_configs: SERVICES.map((service) => ({
      job_name: service,
      static_configs: [
        { targets: [new URL(serviceUrl(stack, service)).host], labels: { pod: `${service}-0` } },
      ],
    })),
  };
  const file = path.join(folder, "prometheus.yaml");
  await writeFile(file, stringify(config));
  await mkdir(path.join(folder, "data"));
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${path.join(folder, "data")}`];
  const child = spawn("prometheus", [...args, "--web.listen-address=127.0.0.1:0"], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr?.on("data", (part: Buffer) => {
    said += part.toString();
  });
  const port = await eventually(
    "Prometheus to listen",
    () => /msg="Listening on"[^\n]*address=127\.0\.0\.1:([1-9]\d*)/.exec(said)?.[1],
    { deadlineMs: 60_000 },
  );
  return { child, address: `http://127.0.0.1:${port}` };
}
