/** Tests of what the chart creates for Prometheus and Grafana; test/e2e/monitoring.test.ts checks its queries against real metrics. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { manifestsOf, objectOf, PROFILES, podsOf, program, SERVICES, skip } from "./profiles.ts";

const KINDS = ["PodMonitor", "PrometheusRule"];
const PROFILE = "observability";

describe("monitoring", { skip }, () => {
  test("is off unless values turn it on, as a cluster may lack its kinds", async () => {
    for (const profile of PROFILES.filter((name) => name !== PROFILE)) {
      const manifests = await manifestsOf(profile);
      assert.ok(
        !manifests.some(({ kind, metadata }) => KINDS.includes(kind) || metadata.name.includes("dashboard")),
      );
    }
  });

  test("scrapes every service once, on a port that its pod has and Prometheus may reach", async () => {
    const manifests = await manifestsOf(PROFILE);
    assert.deepEqual(scrapedBy(manifests, "hone-services"), SERVICES.toSorted());
    const { spec, metadata } = objectOf(manifests, "PodMonitor", "hone-services");
    assert.equal(metadata.labels.release, "kube-prometheus-stack");
    assert.deepEqual(spec.podMetricsEndpoints, [{ port: "http", path: "/metrics", interval: "30s" }]);
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    for (const service of SERVICES) {
      const policy = policies.find((each) => each.metadata.name === `hone-${service}`);
      assert.match(
        JSON.stringify(policy?.spec.ingress),
        /"kubernetes.io\/metadata.name":"monitoring"/,
        service,
      );
    }
  });

  test("scrapes vLLM and SGLang through the gateway, which alone reaches them, and no embedded engine", async () => {
    for (const profile of ["vllm-fsdp2", "sglang-fsdp2"]) {
      const manifests = await render(program, { profile, set: ["monitoring.podMonitors.enabled=true"] });
      assert.deepEqual(scrapedBy(manifests, "hone-engines"), ["inference-gateway"], profile);
      const { spec } = objectOf(manifests, "PodMonitor", "hone-engines");
      assert.equal(spec.podMetricsEndpoints[0].path, "/engine/metrics");
    }
    const embedded = (await manifestsOf(PROFILE)).map(({ metadata }) => metadata.name);
    assert.ok(!embedded.includes("hone-engines"));
  });

  test("gives Grafana's sidecar a dashboard whose panels have titles, explanations and places of their own", async () => {
    const { data, metadata } = objectOf(await manifestsOf(PROFILE), "ConfigMap", "hone-dashboards");
    assert.equal(metadata.labels.grafana_dashboard, "1");
    const { panels } = JSON.parse(data["hone.json"]) as { panels: Manifest[] };
    const charts = panels.filter(({ type }) => type !== "row");
    assert.ok(charts.length >= 20);
    for (const { title, description, targets } of charts)
      assert.ok(title && description && targets.length > 0, title);
    const places = panels.map(({ gridPos: { x, y } }) => `${x} ${y}`);
    assert.equal(new Set(places).size, places.length);
  });

  test("puts the limits of values into the alerts, each with a sentence that says what happens", async () => {
    const manifests = await render(program, { profile: PROFILE, set: ["monitoring.rules.waitSeconds=60"] });
    const { spec } = objectOf(manifests, "PrometheusRule", "hone");
    const alerts = spec.groups.flatMap(({ rules }: Manifest): Manifest[] => rules);
    const { expr } = alerts.find(({ alert }: Manifest) => alert === "HoneRunWaits");
    assert.match(expr, /> 60$/);
    for (const { alert, annotations } of alerts) {
      assert.match(annotations.summary, /\.$/, alert);
      assert.match(annotations.description, /\.$/, alert);
    }
    await assert.rejects(render(program, { set: ["monitoring.rules.cacheShare=2"] }), /cacheShare/);
  });
});

/** Components whose pods a PodMonitor selects; fails for one without the port. */
function scrapedBy(manifests: readonly Manifest[], name: string): string[] {
  const { selector, podMetricsEndpoints } = objectOf(manifests, "PodMonitor", name).spec;
  const [{ values }] = selector.matchExpressions;
  return podsOf(manifests)
    .filter(({ labels }) =>
      Object.entries(selector.matchLabels).every(([label, value]) => labels[label] === value),
    )
    .filter(({ component }) => values.includes(component))
    .map(({ component, spec }) => {
      const ports = spec.containers
        .flatMap((each: Manifest) => each.ports ?? [])
        .map((each: Manifest) => each.name);
      assert.ok(ports.includes(podMetricsEndpoints[0].port), component);
      return component;
    })
    .sort();
}
