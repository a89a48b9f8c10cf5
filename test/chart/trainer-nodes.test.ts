/** Tests of a trainer of several nodes: a LeaderWorkerSet and the rights of its pods. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, RELEASE } from "./helm.ts";
import { manifestsOf, podOf, skip } from "./profiles.ts";

describe("a trainer of several nodes", { skip }, () => {
  const PORT = 29_400;
  const variablesOf = ({ containers: [{ env }] }: Manifest["spec"]) =>
    Object.fromEntries(env.map(({ name, value }: Manifest) => [name, value]));
  const setOf = (manifests: readonly Manifest[]) => {
    const set = manifests.find(({ kind }) => kind === "LeaderWorkerSet");
    assert.ok(set !== undefined, "no LeaderWorkerSet");
    return set;
  };

  test("is a LeaderWorkerSet with a pod for each node instead of a StatefulSet, but not with one node", async () => {
    const manifests = await manifestsOf("multi-node");
    const { apiVersion, metadata, spec } = setOf(manifests);
    assert.equal(apiVersion, "leaderworkerset.x-k8s.io/v1");
    // The pod has the name that it would have in a StatefulSet: hone-trainer-0.
    assert.equal(metadata.name, `${RELEASE}-trainer`);
    assert.deepEqual(metadata.annotations, {
      "leaderworkerset.sigs.k8s.io/exclusive-topology": "topology.kubernetes.io/zone",
    });
    assert.equal(spec.replicas, 1);
    assert.equal(spec.leaderWorkerTemplate.size, 2);
    assert.equal(spec.leaderWorkerTemplate.restartPolicy, "None");
    assert.equal(spec.startupPolicy, "LeaderCreated");
    // A Service shared by all groups would have the set's name, which the trainer's own Service already has.
    assert.equal(spec.networkConfig.subdomainPolicy, "UniquePerReplica");
    const isTrainer = ({ kind, metadata: { name } }: Manifest) =>
      kind === "StatefulSet" && name === `${RELEASE}-trainer`;
    assert.ok(!manifests.some(isTrainer));
    for (const profile of ["vllm-fsdp2", "cpu"]) {
      const others = await manifestsOf(profile);
      assert.ok(others.some(isTrainer), profile);
      assert.ok(!others.some(({ kind }) => kind === "LeaderWorkerSet"), profile);
      assert.ok(!JSON.stringify(others).includes("trainer-node"), profile);
      assert.equal(variablesOf(podOf(others, "trainer")).HONE_TRAINER_NODES, undefined, profile);
    }
  });

  test("gives trainer and nodes the address of their rendezvous from LeaderWorkerSet's variables", async () => {
    const manifests = await manifestsOf("multi-node");
    const trainer = podOf(manifests, "trainer");
    const variables = variablesOf(trainer);
    assert.equal(variables.HONE_TRAINER_NODES, "$(LWS_GROUP_SIZE)");
    assert.equal(variables.HONE_TRAINER_NODES_PORT, String(PORT));
    assert.deepEqual(
      trainer.containers[0].ports.map(({ name, containerPort }: Manifest) => [name, containerPort]),
      [
        ["http", 8_080],
        ["nodes", PORT],
      ],
    );
    const node = podOf(manifests, "trainer-node");
    const heard = variablesOf(node);
    assert.equal(heard.HONE_FSDP_TRAINER, `$(LWS_LEADER_ADDRESS):${PORT}`);
    assert.equal(heard.HONE_FSDP_NODE, "$(LWS_WORKER_INDEX)");
    assert.equal(heard.HONE_HTTP_PORT, "8080");
    assert.deepEqual(node.containers[0].command, [variables.HONE_TRAINER_PYTHON, "-m", "hone_fsdp.node"]);
    assert.equal(node.containers[0].image, trainer.containers[0].image);
  });

  test("gives every node the same GPUs, memory, placement and files, but no access to bus and database", async () => {
    const manifests = await manifestsOf("multi-node");
    const [trainer, node] = [podOf(manifests, "trainer"), podOf(manifests, "trainer-node")];
    for (const key of ["nodeSelector", "tolerations", "securityContext", "terminationGracePeriodSeconds"]) {
      assert.deepEqual(node[key], trainer[key], key);
    }
    assert.deepEqual(node.containers[0].resources, trainer.containers[0].resources);
    const placesOf = ({ containers: [{ volumeMounts }] }: Manifest["spec"]) =>
      volumeMounts.map(({ name, mountPath }: Manifest) => `${name} ${mountPath}`);
    const places = placesOf(node);
    assert.deepEqual(
      places,
      placesOf(trainer).filter((place: string) => !place.startsWith("credentials")),
    );
    // A rank reads and writes under the same path as the trainer.
    for (const place of ["state /var/lib/hone", "models /models", "shm /dev/shm"]) {
      assert.ok(places.includes(place), place);
    }
    const text = JSON.stringify(node);
    for (const word of ["credentials", "secretKeyRef", "HONE_NATS", "HONE_DATABASE", "HF_TOKEN"]) {
      assert.ok(!text.includes(word), word);
    }
  });

  test("lets its pods reach each other on every port, and its nodes reach nothing else", async () => {
    const manifests = await manifestsOf("multi-node");
    const policyOf = (component: string) =>
      manifests.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === `${RELEASE}-${component}`,
      )?.spec;
    const group = ["trainer", "trainer-node"];
    const isGroup = ({ from, to, ports }: Manifest) => {
      const [peer, ...others] = from ?? to;
      const chosen = peer.podSelector?.matchExpressions?.[0]?.values;
      return others.length === 0 && ports === undefined && String(chosen) === String(group);
    };
    for (const component of group) {
      const { ingress, egress, podSelector } = policyOf(component);
      assert.equal(podSelector.matchLabels["app.kubernetes.io/component"], component);
      assert.equal(ingress.filter(isGroup).length, 1, component);
      assert.equal(egress.filter(isGroup).length, 1, component);
    }
    const { ingress, egress } = policyOf("trainer-node");
    assert.equal(ingress.length + egress.length, 2);
    // The trainer's Service selects only trainers, which serve the metrics.
    const service = manifests.find(
      ({ kind, metadata }) => kind === "Service" && metadata.name === `${RELEASE}-trainer`,
    );
    assert.equal(service?.spec.selector["app.kubernetes.io/component"], "trainer");
  });

  test("is protected from eviction, both trainer and nodes", async () => {
    const budgets = (await manifestsOf("multi-node")).filter(({ kind }) => kind === "PodDisruptionBudget");
    for (const component of ["trainer", "trainer-node"]) {
      const budget = budgets.find(({ metadata }) => metadata.name === `${RELEASE}-${component}`);
      assert.equal(budget?.spec.maxUnavailable, 0, component);
      assert.equal(budget?.spec.selector.matchLabels["app.kubernetes.io/component"], component);
    }
  });
});
