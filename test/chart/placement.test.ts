/** Tests of the values that choose where pods run; engines.test.ts tests those of GPUs. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { manifestsOf, podOf, podsOf, program, skip } from "./profiles.ts";

describe("placement", { skip }, () => {
  test("a runtime class is set on pods with GPUs, and only if values name one", async () => {
    const classes = async (profile: string) =>
      podsOf(await manifestsOf(profile))
        .filter(({ spec }) => spec.runtimeClassName !== undefined)
        .map(({ component, spec }) => `${component}: ${spec.runtimeClassName}`)
        .sort();
    assert.deepEqual(await classes("sglang-fsdp2"), ["inference-gateway: nvidia", "trainer: nvidia"]);
    assert.deepEqual(await classes("vllm-fsdp2"), []);
  });

  test("several replicas are spread over nodes, and a single one is not", async () => {
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
      // The spread counts only pods of this component.
      assert.equal(labelSelector.matchLabels["app.kubernetes.io/component"], component);
      for (const [key, value] of Object.entries(labelSelector.matchLabels)) assert.equal(labels[key], value);
    }
  });

  test("priority, selectors, tolerations and affinity of values are added to those of GPUs", async () => {
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

  test("pods that KEDA scales are spread if there may be more than one", async () => {
    const spreadOf = async (maxReplicas: number) => {
      const set = ["agentRollout.keda.enabled=true", `agentRollout.keda.maxReplicas=${maxReplicas}`];
      return podOf(await render(program, { profile: "cpu", set }), "agent-rollout").topologySpreadConstraints;
    };
    const [{ topologyKey, labelSelector }] = await spreadOf(8);
    assert.equal(topologyKey, "kubernetes.io/hostname");
    assert.equal(labelSelector.matchLabels["app.kubernetes.io/component"], "agent-rollout");
    assert.equal(await spreadOf(1), undefined);
  });

  test("GPU products are added to every alternative of a user's own affinity, which is kept", async () => {
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

  test("lists and maps of values may be null", async () => {
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

  test("GPUs are limits of the one container that uses them, in whole numbers", async () => {
    for (const profile of ["vllm-fsdp2", "sglang-fsdp2", "multi-node"]) {
      for (const { name, spec } of podsOf(await manifestsOf(profile))) {
        const users = spec.containers.filter(
          ({ resources }: Manifest) => resources?.limits?.["nvidia.com/gpu"] !== undefined,
        );
        assert.ok(users.length <= 1, name);
        for (const { resources } of users) {
          assert.ok(Number.isInteger(resources.limits["nvidia.com/gpu"]));
          // Without a request, Kubernetes uses the limit.
          assert.equal(resources.requests?.["nvidia.com/gpu"], undefined);
        }
      }
    }
  });

  test("an eviction may end one of several pods, and no trainer with GPUs", async () => {
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
