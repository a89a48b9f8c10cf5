/** Tests of pods with an engine: nodes, resources, ports and environment. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { withLargeArrays } from "@hone/embedded";
import { type Manifest, NAMESPACE, RELEASE } from "./helm.ts";
import { DEFAULTS, manifestsOf, podOf, podsOf, skip } from "./profiles.ts";

describe("the profiles with GPUs", { skip }, () => {
  for (const [profile, gpus, engine] of [
    [DEFAULTS, { "inference-gateway": 1, trainer: 1 }, "vllm"],
    ["vllm-fsdp2", { "inference-gateway": 2, trainer: 8 }, "vllm"],
    ["sglang-fsdp2", { "inference-gateway": 1, trainer: 4 }, "sglang"],
    ["multi-node", { "inference-gateway": 4, trainer: 8, "trainer-node": 8 }, "vllm"],
  ] as const) {
    test(`${profile} pins inference and training to nodes with GPUs, and nothing else`, async () => {
      for (const { component, spec } of podsOf(await manifestsOf(profile))) {
        const wanted = spec.containers.map(
          (each: Manifest) => each.resources?.limits?.["nvidia.com/gpu"] ?? 0,
        );
        const sum = wanted.reduce((total: number, each: number) => total + each, 0);
        assert.equal(sum, (gpus as Record<string, number>)[component] ?? 0, component);
        if (sum === 0) {
          assert.equal(spec.nodeSelector?.["nvidia.com/gpu.present"], undefined, component);
          continue;
        }
        assert.equal(spec.nodeSelector["nvidia.com/gpu.present"], "true");
        assert.ok(spec.tolerations.some((each: Manifest) => each.key === "nvidia.com/gpu"));
        const shm = spec.volumes.find((volume: Manifest) => volume.name === "shm");
        assert.equal(shm?.emptyDir.medium, "Memory");
      }
    });

    test(`${profile} keeps the engine's control port inside its pod`, async () => {
      const { containers } = podOf(await manifestsOf(profile), "inference-gateway");
      const server = containers.find(({ name }: Manifest) => name === "engine");
      assert.ok(server.args.includes("--host=127.0.0.1"));
      assert.ok(server.command.join(" ").includes(engine));
      const gateway = containers.find(({ name }: Manifest) => name === "inference-gateway");
      const variables = Object.fromEntries(gateway.env.map(({ name, value }: Manifest) => [name, value]));
      assert.equal(variables.HONE_INFERENCE_ENGINE, engine);
      assert.equal(variables.HONE_INFERENCE_ENGINE_URL, "http://127.0.0.1:8000");
      // The server reads each version's weights from the path that it is given.
      const place = (each: Manifest) =>
        each.volumeMounts.find(({ name }: Manifest) => name === "state").mountPath;
      assert.equal(place(server), place(gateway));
      // Startup: the figure of values.yaml, 45 min, every 10 s.
      assert.equal(server.startupProbe.failureThreshold * server.startupProbe.periodSeconds, 45 * 60);
    });
  }

  test("vLLM is started with its command line and the model as first argument, and SGLang with its Python module", async () => {
    const server = async (profile: string) =>
      podOf(await manifestsOf(profile), "inference-gateway").containers.find(
        ({ name }: Manifest) => name === "engine",
      );
    const vllm = await server("vllm-fsdp2");
    assert.deepEqual([...vllm.command, vllm.args[0]], ["vllm", "serve", "Qwen/Qwen3-8B"]);
    const sglang = await server("sglang-fsdp2");
    assert.deepEqual(
      [...sglang.command, sglang.args[0]],
      ["python3", "-m", "sglang.launch_server", "--model-path=Qwen/Qwen3-4B"],
    );
  });

  test("the gateway can write to its folder of links to weights, which the server has under the same path", async () => {
    for (const profile of [DEFAULTS, "vllm-fsdp2", "sglang-fsdp2", "multi-node"]) {
      const { containers, volumes } = podOf(await manifestsOf(profile), "inference-gateway");
      const [gateway, server] = containers;
      const links = gateway.env.find(
        ({ name }: Manifest) => name === "HONE_INFERENCE_ENGINE_LINKS_DIR",
      ).value;
      const mountOf = ({ volumeMounts }: Manifest) =>
        volumeMounts.find(({ mountPath }: Manifest) => mountPath === links);
      assert.equal(mountOf(gateway).readOnly, undefined, profile);
      assert.equal(mountOf(server).readOnly, true, profile);
      assert.equal(mountOf(gateway).name, mountOf(server).name);
      // The links point into the volume of states, which both have under the same path.
      assert.ok(volumes.find(({ name }: Manifest) => name === mountOf(gateway).name).emptyDir);
    }
  });

  test("vllm-fsdp2 runs only on the GPU products that it names", async () => {
    const { affinity } = podOf(await manifestsOf("vllm-fsdp2"), "trainer");
    const [term] = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms;
    assert.deepEqual(term.matchExpressions[0].values, ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"]);
  });

  test("vllm-fsdp2 lets the engine send its spans to Jaeger, and network policies allow it", async () => {
    const manifests = await manifestsOf("vllm-fsdp2");
    const { containers } = podOf(manifests, "inference-gateway");
    const server = containers.find(({ name }: Manifest) => name === "engine");
    assert.ok(
      server.args.includes(`--otlp-traces-endpoint=grpc://hone-jaeger.${NAMESPACE}.svc.cluster.local:4317`),
    );
    const policyOf = (component: string) =>
      manifests.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === `${RELEASE}-${component}`,
      );
    const out = JSON.stringify(policyOf("inference-gateway")?.spec.egress);
    assert.match(out, /component":"jaeger"/);
    assert.match(JSON.stringify(policyOf("jaeger")?.spec.ingress), /inference-gateway/);
  });

  test("sglang-fsdp2 lets KEDA choose the number of agent-rollout's pods", async () => {
    const manifests = await manifestsOf("sglang-fsdp2");
    const deployment = manifests.find(
      ({ kind, metadata }) => kind === "Deployment" && metadata.name === `${RELEASE}-agent-rollout`,
    );
    assert.equal(deployment?.spec.replicas, undefined);
    const scaled = manifests.find(({ kind }) => kind === "ScaledObject");
    const [trigger] = scaled?.spec.triggers ?? [];
    assert.equal(trigger.metadata.stream, "JOBS");
    assert.equal(trigger.metadata.consumer, "agent-rollout");
  });
});

describe("the profiles without GPUs", { skip }, () => {
  test("cpu needs no GPU: no resource, no label, no taint, no server beside the gateway, no PyTorch", async () => {
    const manifests = await manifestsOf("cpu");
    assert.doesNotMatch(JSON.stringify(manifests), /nvidia|vllm|sglang|hone\/trainer|torch/);
    assert.equal(podOf(manifests, "inference-gateway").containers.length, 1);
  });

  test("cpu gives only the services with an engine the C library's settings that `hone up` gives them", async () => {
    const variables = podsOf(await manifestsOf("cpu")).flatMap(({ component, spec }) =>
      spec.containers
        .flatMap(({ env = [] }: Manifest) => env)
        .filter(({ name }: Manifest) => name === "GLIBC_TUNABLES")
        .map(({ value }: Manifest) => [component, value]),
    );
    assert.deepEqual(variables.sort(), [
      ["inference-gateway", withLargeArrays({}, "generation").GLIBC_TUNABLES],
      ["trainer", withLargeArrays({}, "training").GLIBC_TUNABLES],
    ]);
  });
});
