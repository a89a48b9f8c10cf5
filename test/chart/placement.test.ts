/** Where pods may run, beside the GPUs that engines.test.ts looks at: by values that an operator sets. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { manifestsOf, podOf, podsOf, program, skip } from "./profiles.ts";

describe("placement", { skip }, () => {
  test("a runtime class is that of pods with GPUs, and only where it is named", async () => {
    const classes = async (profile: string) =>
      podsOf(await manifestsOf(profile))
        .filter(({ spec }) => spec.runtimeClassName !== undefined)
        .map(({ component, spec }) => `${component}: ${spec.runtimeClassName}`)
        .sort();
    assert.deepEqual(await classes("sglang-fsdp2"), ["inference-gateway: nvidia", "trainer: nvidia"]);
    assert.deepEqual(await classes("vllm-fsdp2"), []);
  });

  test("several replicas are spread over nodes, one is not", async () => {
    const spread = podsOf(await manifestsOf("hardened")).filter(({ spec }) => spec.topologySpreadConstraints);
    const components = spread.map(({ component }) => component).sort();
    assert.deepEqual(components, [
      "agent-rollout",
      "dataset",
      "inference-gateway",
      "judge",
      "nats",
      "tracer",
      "trainer",
    ]);
    for (const { component, labels, spec } of spread) {
      const [{ topologyKey, labelSelector }] = spec.topologySpreadConstraints;
      assert.equal(topologyKey, "kubernetes.io/hostname");
      // It counts the pods of this component alone.
      assert.equal(labelSelector.matchLabels["app.kubernetes.io/component"], component);
      for (const [key, value] of Object.entries(labelSelector.matchLabels)) assert.equal(labels[key], value);
    }
  });

  test("priority, selectors, tolerations and affinity of values reach the pods, beside those of GPUs", async () => {
    const manifests = await render(program, {
      profile: "vllm-fsdp2",
      set: [
        "trainer.priorityClassName=training",
        "trainer.nodeSelector.zone=a",
        "trainer.tolerations[0].key=reserved",
        "trainer.tolerations[0].operator=Exists",
        "judge.priorityClassName=low",
        "judge.runtimeClassName=gvisor",
        "agentRollout.runtimeClassName=kata",
      ],
    });
    const trainer = podOf(manifests, "trainer");
    assert.equal(trainer.priorityClassName, "training");
    assert.deepEqual(trainer.nodeSelector, { zone: "a", "nvidia.com/gpu.present": "true" });
    assert.deepEqual(
      trainer.tolerations.map(({ key }: Manifest) => key),
      ["reserved", "nvidia.com/gpu"],
    );
    assert.equal(podOf(manifests, "judge").priorityClassName, "low");
    assert.equal(podOf(manifests, "judge").runtimeClassName, "gvisor");
    assert.equal(podOf(manifests, "agent-rollout").runtimeClassName, "kata");
    assert.equal(podOf(manifests, "dataset").runtimeClassName, undefined);
    assert.equal(podOf(manifests, "dataset").priorityClassName, undefined);
  });

  test("several pods that KEDA makes are spread as well, where it may make more than one", async () => {
    const spreadOf = async (maxReplicas: number) => {
      const set = ["agentRollout.keda.enabled=true", `agentRollout.keda.maxReplicas=${maxReplicas}`];
      return podOf(await render(program, { profile: "cpu", set }), "agent-rollout").topologySpreadConstraints;
    };
    const [{ topologyKey, labelSelector }] = await spreadOf(8);
    assert.equal(topologyKey, "kubernetes.io/hostname");
    assert.equal(labelSelector.matchLabels["app.kubernetes.io/component"], "agent-rollout");
    assert.equal(await spreadOf(1), undefined);
  });

  test("products of GPUs go into every alternative of a user's own affinity, and nothing of it is lost", async () => {
    const own = "trainer.affinity.nodeAffinity";
    const required = `${own}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
    const manifests = await render(program, {
      profile: "vllm-fsdp2",
      set: [
        ...["a", "b"].flatMap((zone, index) => [
          `${required}[${index}].matchExpressions[0].key=zone`,
          `${required}[${index}].matchExpressions[0].operator=In`,
          `${required}[${index}].matchExpressions[0].values={${zone}}`,
        ]),
        `${own}.preferredDuringSchedulingIgnoredDuringExecution[0].weight=5`,
        `${own}.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key=metadata.name`,
        "trainer.affinity.podAntiAffinity.note=kept",
      ],
    });
    const { nodeAffinity, podAntiAffinity } = podOf(manifests, "trainer").affinity;
    const products = {
      key: "nvidia.com/gpu.product",
      operator: "In",
      values: ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H200"],
    };
    assert.deepEqual(
      nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms,
      ["a", "b"].map((zone) => ({
        matchExpressions: [{ key: "zone", operator: "In", values: [zone] }, products],
      })),
    );
    assert.equal(nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight, 5);
    assert.deepEqual(podAntiAffinity, { note: "kept" });
  });

  test("lists and maps of values may be taken away with null", async () => {
    const gpus = ["inferenceGateway.engine.gpu", "trainer.engine.gpu"];
    const manifests = await render(program, {
      profile: "vllm-fsdp2",
      set: gpus.flatMap((gpu) => [
        `${gpu}.nodeSelector=null`,
        `${gpu}.tolerations=null`,
        `${gpu}.products=null`,
      ]),
    });
    for (const component of ["inference-gateway", "trainer"]) {
      const { nodeSelector, tolerations, affinity, containers } = podOf(manifests, component);
      assert.deepEqual([nodeSelector, tolerations, affinity], [undefined, undefined, undefined], component);
      const gpuOf = ({ resources }: Manifest) => resources.limits["nvidia.com/gpu"] ?? 0;
      assert.ok(containers.some((each: Manifest) => gpuOf(each) > 0));
    }
  });

  test("GPUs are requested as they are limited, whole, by the one container that uses them", async () => {
    for (const profile of ["vllm-fsdp2", "sglang-fsdp2", "multi-node"]) {
      for (const { name, spec } of podsOf(await manifestsOf(profile))) {
        const users = spec.containers.filter(
          ({ resources }: Manifest) => resources?.limits?.["nvidia.com/gpu"] !== undefined,
        );
        assert.ok(users.length <= 1, name);
        for (const { resources } of users) {
          assert.ok(Number.isInteger(resources.limits["nvidia.com/gpu"]));
          // Kubernetes takes the limit for the request where there is none.
          assert.equal(resources.requests?.["nvidia.com/gpu"], undefined);
        }
      }
    }
  });

  test("an eviction may take one of several pods, and no trainer with GPUs", async () => {
    const budgets = (manifests: readonly Manifest[]) =>
      Object.fromEntries(
        manifests
          .filter(({ kind }) => kind === "PodDisruptionBudget")
          .map(({ metadata, spec }) => [metadata.name.replace("hone-", ""), spec.maxUnavailable]),
      );
    const onCpu = budgets(await manifestsOf("cpu"));
    assert.deepEqual([onCpu.trainer, onCpu["inference-gateway"], onCpu.nats], [1, 1, 1]);
    assert.equal(budgets(await manifestsOf("vllm-fsdp2")).trainer, 0);
  });
});
