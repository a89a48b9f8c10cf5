/** Tests of where spans go, what Jaeger receives, and its links. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { type Manifest, NAMESPACE, render } from "./helm.ts";
import { manifestsOf, objectOf, podOf, program, SERVICES, skip } from "./profiles.ts";

const MIB = 2 ** 20;
const addressOf = (component: string) => `http://hone-${component}.${NAMESPACE}.svc.cluster.local`;

/** The environment variables of a service's container. */
function environmentOf(manifests: readonly Manifest[], component: string): Record<string, string> {
  const [container] = podOf(manifests, component).containers;
  return Object.fromEntries(container.env.map(({ name, value }: Manifest) => [name, value]));
}

function jaegerOf(manifests: readonly Manifest[]): { config: Manifest; ui: Manifest } {
  const { data } = objectOf(manifests, "ConfigMap", "hone-jaeger");
  return { config: parse(data["config.yaml"]), ui: JSON.parse(data["ui.json"]) };
}

describe("spans", { skip }, () => {
  const routes = [
    ["tracer", `${addressOf("tracer")}:8080`, `${addressOf("jaeger")}:4318`],
    ["straight", `${addressOf("jaeger")}:4318`, undefined],
    ["none", undefined, undefined],
  ] as const;
  for (const [route, endpoint, forward] of routes) {
    test(`with the route ${route} go from every service to the same address`, async () => {
      const manifests = await render(program, { profile: "cpu", set: [`telemetry.route=${route}`] });
      for (const component of SERVICES) {
        const {
          HONE_TRACER_URL: tracer,
          OTEL_EXPORTER_OTLP_ENDPOINT: straight,
          HONE_OTLP_FORWARD: on,
        } = environmentOf(manifests, component);
        assert.deepEqual(
          [tracer, straight],
          [route === "tracer" ? endpoint : undefined, route === "straight" ? endpoint : undefined],
          component,
        );
        assert.equal(on, component === "tracer" ? forward : undefined, component);
      }
    });
  }

  test("are sampled with the same ratio everywhere, so that no service drops what another one keeps", async () => {
    const manifests = await render(program, { profile: "cpu", set: ["telemetry.sampleRatio=0.25"] });
    for (const component of SERVICES) {
      assert.equal(environmentOf(manifests, component).HONE_TRACE_SAMPLE_RATIO, "0.25", component);
    }
    // Jaeger's pipeline must not sample again.
    const { service, processors } = jaegerOf(manifests).config;
    assert.deepEqual(service.pipelines.traces.processors, ["batch"]);
    assert.deepEqual(Object.keys(processors), ["batch"]);
  });

  test("of vLLM and SGLang go to the chart's Jaeger, with the flags of each", async () => {
    for (const [profile, flags] of [
      ["vllm-fsdp2", ["--otlp-traces-endpoint=grpc://hone-jaeger"]],
      ["sglang-fsdp2", ["--enable-trace", "--otlp-traces-endpoint=hone-jaeger"]],
    ] as const) {
      const manifests = await render(program, { profile, set: ["inferenceGateway.engine.tracing=true"] });
      const { containers } = podOf(manifests, "inference-gateway");
      const engine = containers.find(({ name }: Manifest) => name === "engine");
      for (const flag of flags) {
        assert.ok(
          engine.args.some((each: string) => each.startsWith(flag)),
          `${flag} of ${profile}`,
        );
      }
      const service = engine.env.find(({ name }: Manifest) => name === "OTEL_SERVICE_NAME");
      assert.equal(service.value, profile.split("-")[0]);
      const off = await render(program, { profile, set: ["inferenceGateway.engine.tracing=false"] });
      const silent = podOf(off, "inference-gateway").containers.find(
        ({ name }: Manifest) => name === "engine",
      );
      assert.ok(!JSON.stringify(silent.args).includes("trace"));
    }
  });
});

describe("Jaeger", { skip }, () => {
  test("accepts the span of a step with its links, with both protocols", async () => {
    const { receivers } = jaegerOf(await manifestsOf("cpu")).config;
    const { grpc, http } = receivers.otlp.protocols;
    assert.equal(grpc.max_recv_msg_size_mib, 64);
    assert.equal(http.max_request_body_size, 64 * MIB);
  });

  test("keeps spans on its volume for the time that values say, or in memory", async () => {
    const backend = (manifests: readonly Manifest[]) =>
      jaegerOf(manifests).config.extensions.jaeger_storage.backends.main;
    const { directories, ttl } = backend(await manifestsOf("vllm-fsdp2")).badger;
    assert.equal(ttl.spans, "168h");
    const { volumeMounts } = podOf(await manifestsOf("vllm-fsdp2"), "jaeger").containers[0];
    const volume = volumeMounts.find(({ name }: Manifest) => name === "data");
    for (const folder of Object.values<string>(directories))
      assert.ok(folder.startsWith(`${volume.mountPath}/`), folder);
    assert.equal(backend(await manifestsOf("cpu")).memory.max_traces, 50_000);
  });

  test("links to Hone's page if that has an address, and to nothing else", async () => {
    const { linkPatterns } = jaegerOf(await manifestsOf("cpu")).ui;
    const page = "https://hone.example.org";
    assert.deepEqual(
      linkPatterns.map(({ type, key, url }: Manifest) => [type, key, url]),
      [
        ["tags", "hone.slot", `${page}/runs/#{hone.run.id}/rollouts/#{hone.slot}`],
        ["tags", "hone.rollout.id", `${page}/runs/#{hone.run.id}/rollouts/#{hone.slot}`],
        ["tags", "hone.run.id", `${page}/runs/#{hone.run.id}`],
        ["traces", undefined, `${page}/traces/#{traceID}`],
      ],
    );
    assert.deepEqual(jaegerOf(await manifestsOf("vllm-fsdp2")).ui.linkPatterns, []);
  });

  test("is linked from Hone's page if it has an address", async () => {
    assert.equal(
      environmentOf(await manifestsOf("cpu"), "tracer").HONE_JAEGER_URL,
      "https://jaeger.example.org",
    );
    assert.equal(environmentOf(await manifestsOf("vllm-fsdp2"), "tracer").HONE_JAEGER_URL, undefined);
  });
});
