/** Tests of the rendered chart: each profile, the values that are refused, and what every pod must have. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { inlineFiles } from "@hone/config";
import { DEFAULT_GRACE_MS } from "@hone/service-kit";
import { lakeRun } from "../support/index.ts";
import { CHART, helm, type Manifest, NAMESPACE, RELEASE, render, valuesOf } from "./helm.ts";
import {
  containersOf,
  manifestsOf,
  optionsOf,
  PROFILES,
  podOf,
  podsOf,
  program,
  SERVICES,
  skip,
} from "./profiles.ts";

/** Seconds that a service takes to drain and close, and that preStop may take before. */
const DRAIN_SECONDS = DEFAULT_GRACE_MS / 1_000;

/** Values of a trainer of two nodes. */
const SEVERAL_NODES = ["trainer.engine.nodes=2", "trainer.engine.kind=fsdp2", "trainer.engine.gpu.count=8"];

describe("the chart", { skip }, () => {
  test("helm lint --strict reports nothing about any profile", async () => {
    for (const profile of PROFILES) {
      const said = await helm(program, [
        "lint",
        CHART,
        "--strict",
        "--namespace",
        NAMESPACE,
        ...valuesOf(optionsOf(profile)),
      ]);
      assert.match(said, /0 chart\(s\) failed/, profile);
    }
  });

  const refusals: [string, string[], RegExp][] = [
    ["a number that is a text", ["trainer.replicas=two"], /\/trainer\/replicas': got string, want integer/],
    ["a misspelt key", ["judge.replica=3"], /\/judge': additional properties 'replica' not allowed/],
    [
      "an unknown kind of engine",
      ["inferenceGateway.engine.kind=llamacpp"],
      /engine\/kind'.*onnx.*vllm.*sglang/,
    ],
    ["a grace period below the drain", ["judge.terminationGracePeriodSeconds=5"], /minimum: got 5, want 12/],
    ["the tag latest", ["nats.image.tag=latest"], /the image of nats has the tag latest/],
    [
      "an engine on GPUs without any",
      ["inferenceGateway.engine.gpu.count=0"],
      /the engine vllm needs a GPU: set inferenceGateway\.engine\.gpu\.count/,
    ],
    [
      "GPUs for an engine on CPUs",
      ["trainer.engine.kind=onnx"],
      /the engine onnx runs on CPUs and cannot use GPUs/,
    ],
    [
      "several nodes for an engine that runs on one",
      ["trainer.engine.nodes=2", "trainer.engine.kind=onnx", "trainer.engine.gpu.count=0"],
      /the engine onnx cannot run on 2 nodes: set trainer\.engine\.nodes to 1/,
    ],
    [
      "a volume that only one node can mount, for a trainer of several nodes",
      [...SEVERAL_NODES, "storage.state.accessModes={ReadWriteOnce}"],
      /storage\.state cannot be mounted on several nodes/,
    ],
    [
      "a volume of models for each node alone",
      [...SEVERAL_NODES, "storage.models.size="],
      /the 2 nodes of a trainer need a shared volume of models/,
    ],
    [
      "an exclusive topology for a trainer of one node",
      ["trainer.engine.exclusiveTopology=rack"],
      /exclusiveTopology has no meaning for a trainer of one node/,
    ],
    ["half a node", ["trainer.engine.nodes=0"], /engine\/nodes': minimum: got 0, want 1/],
    [
      "a bus outside with passwords of the chart's own",
      ["nats.enabled=false"],
      /set credentials.create to false/,
    ],
    [
      "more replicas of streams than servers",
      ["nats.streamReplicas=3"],
      /3 replicas of each stream do not fit on 1 servers/,
    ],
    [
      "episodes that the bus's disk does not hold beside the other streams",
      ["nats.episodesMaxSize=14GB"],
      /streams of 25664 MB \(nats\.episodesMaxSize 14GB.*do not fit into nats\.maxFileStore 18GB: increase nats\.maxFileStore/,
    ],
    [
      "a disk of streams that the bus's volume does not hold",
      ["nats.episodesMaxSize=10GB", "nats.maxFileStore=20GB"],
      /20GB of streams do not fit on a volume of 20Gi: set nats\.volume\.size above/,
    ],
    [
      "a size of EPISODES that is too small for one episode",
      ["nats.episodesMaxSize=3MB"],
      /\/nats\/episodesMaxSize': '3MB'/,
    ],
    [
      "spans sent directly to a Jaeger that is not there",
      ["telemetry.route=straight", "jaeger.enabled=false"],
      /telemetry\.route is straight, but there is no receiver of spans/,
    ],
    [
      "one address of sessions for several pods",
      ["agentRollout.replicas=2", "agentRollout.sessionUrl=https://agents.example.org"],
      /agentRollout\.sessionUrl is the address of one pod/,
    ],
    [
      "a claim and a ConfigMap for the same files",
      ["storage.files.existingClaim=a", "storage.files.configMap=b"],
      /storage.files/,
    ],
  ];
  for (const [what, set, message] of refusals) {
    test(`refuses ${what}`, async () => {
      await assert.rejects(render(program, { set }), message);
    });
  }

  test("values.yaml explains each key", () => {
    const lines = readFileSync(path.join(CHART, "values.yaml"), "utf8").split("\n");
    const bare = lines.filter((line, index) => {
      if (!/^\s*[A-Za-z]\w*:/.test(line)) return false;
      // A group whose first key has a comment on the next line is explained by its keys.
      const isGroup = /:\s*$/.test(line) && /^\s*#/.test(lines[index + 1] ?? "");
      return !/^\s*#/.test(lines[index - 1] ?? "") && !isGroup;
    });
    assert.deepEqual(bare, []);
  });

  test("the run file of `helm test` is generated from the run file of the tests", async () => {
    const kept = JSON.parse(readFileSync(path.join(CHART, "files", "test-run.json"), "utf8"));
    const made = await lakeRun({
      name: "helm-test",
      steps: 2,
      tasksPerStep: 4,
      minibatches: 1,
      warmStartTasks: 40,
      evalTasks: 4,
    });
    assert.deepEqual(kept, JSON.parse(JSON.stringify(await inlineFiles(made, CHART))));
  });
});

for (const profile of PROFILES) {
  describe(`the profile ${profile}`, { skip }, () => {
    test("has a pod, a network policy, a service account and a disruption budget for every service", async () => {
      const manifests = await manifestsOf(profile);
      for (const component of SERVICES) {
        podOf(manifests, component);
        for (const kind of ["NetworkPolicy", "ServiceAccount", "PodDisruptionBudget", "Service"]) {
          assert.ok(
            manifests.some((each) => each.kind === kind && each.metadata.name === `${RELEASE}-${component}`),
            `${kind} of ${component}`,
          );
        }
      }
    });

    test("denies all traffic that no policy allows", async () => {
      const policies = (await manifestsOf(profile)).filter(({ kind }) => kind === "NetworkPolicy");
      const base = policies.find(({ metadata }) => metadata.name === `${RELEASE}-default-deny`);
      assert.deepEqual(base?.spec.policyTypes, ["Ingress", "Egress"]);
      assert.equal(base?.spec.ingress, undefined);
      const { "app.kubernetes.io/component": component, ...all } = base?.spec.podSelector.matchLabels ?? {};
      assert.equal(component, undefined, "it is for every pod");
      for (const { spec, name } of podsOf(await manifestsOf(profile)))
        assert.ok(Object.keys(all).length === 2 && spec, name);
      for (const { metadata, spec } of policies) {
        for (const rule of spec.ingress ?? [])
          assert.ok(rule.from?.length > 0, `${metadata.name} allows traffic from everywhere`);
        const open = (spec.egress ?? []).filter((rule: Manifest) => !(rule.to?.length > 0));
        assert.deepEqual(open, [], `${metadata.name} allows traffic to everywhere`);
      }
    });

    test("gives no pod a token, a writable root file system, or more rights than it needs", async () => {
      for (const { name, component, spec } of podsOf(await manifestsOf(profile))) {
        assert.equal(spec.automountServiceAccountToken, false, name);
        assert.equal(spec.enableServiceLinks, false, name);
        for (const container of containersOf(spec)) {
          const { securityContext: own } = container;
          assert.equal(own.allowPrivilegeEscalation, false, container.name);
          assert.deepEqual(own.capabilities, { drop: ["ALL"] }, container.name);
          // The images of the engines write to their root file system.
          if (container.name !== "engine") assert.equal(own.readOnlyRootFilesystem, true, container.name);
          assert.notEqual(own.runAsNonRoot, false, container.name);
          assert.ok(own.runAsUser === undefined || own.runAsUser > 0, container.name);
          assert.equal(spec.securityContext.runAsNonRoot, true, component);
          assert.deepEqual(spec.securityContext.seccompProfile, { type: "RuntimeDefault" }, component);
        }
      }
    });

    test("gives no service account a token", async () => {
      const accounts = (await manifestsOf(profile)).filter(({ kind }) => kind === "ServiceAccount");
      for (const { metadata, automountServiceAccountToken } of accounts)
        assert.equal(automountServiceAccountToken, false, metadata.name);
    });

    test("pins each image", async () => {
      for (const { spec } of podsOf(await manifestsOf(profile))) {
        for (const { image } of containersOf(spec))
          assert.match(image, /:[\w][\w.-]*(@sha256:[0-9a-f]{64})?$/, image);
        for (const { image } of containersOf(spec)) assert.doesNotMatch(image, /:latest/);
      }
    });

    test("has all three probes on each container that runs until the pod ends", async () => {
      const pods = podsOf(await manifestsOf(profile)).filter(({ component }) => component !== "test");
      for (const { name, spec } of pods) {
        for (const container of spec.containers) {
          for (const kind of ["startupProbe", "readinessProbe", "livenessProbe"]) {
            const probe = container[kind];
            assert.ok(probe?.periodSeconds > 0 && probe.timeoutSeconds > 0, `${kind} of ${name}`);
            const port = probe.httpGet?.port;
            const names = (container.ports ?? []).map((each: Manifest) => each.name);
            assert.ok(port === undefined || names.includes(port), `${kind} of ${name} asks ${port}`);
          }
          const { failureThreshold, periodSeconds } = container.livenessProbe;
          assert.ok(
            failureThreshold * periodSeconds >= 60,
            `${name} must not be killed for a minute of silence`,
          );
        }
      }
    });

    test("gives services a grace period that is longer than they need", async () => {
      for (const component of SERVICES) {
        const { terminationGracePeriodSeconds, containers } = podOf(await manifestsOf(profile), component);
        const preStop = containers[0].lifecycle?.preStop.sleep.seconds ?? 0;
        assert.ok(terminationGracePeriodSeconds > preStop + DRAIN_SECONDS, component);
      }
    });

    test("gives outside agents the address of the rollout's own pod, which only the agents that values name can reach", async () => {
      const manifests = await manifestsOf(profile);
      const { env } = podOf(manifests, "agent-rollout").containers[0];
      const at = (name: string) => env.findIndex((each: Manifest) => each.name === name);
      assert.equal(env[at("HONE_SESSION_URL")].value, "http://$(HONE_POD_ADDRESS):8080");
      const swarmKey = { secretKeyRef: { name: "hone-swarm", key: "key" } };
      assert.deepEqual(env[at("HONE_SWARM_KEY")]?.valueFrom, profile === "hardened" ? swarmKey : undefined);
      // A variable must come before others that refer to it.
      assert.ok(at("HONE_POD_ADDRESS") >= 0 && at("HONE_POD_ADDRESS") < at("HONE_SESSION_URL"));
      const policy = manifests.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === `${RELEASE}-agent-rollout`,
      );
      const peers = (policy?.spec.ingress ?? []).flatMap((rule: Manifest) => rule.from);
      const allowed = { hardened: ["agents", "monitoring"], observability: ["monitoring"] }[profile] ?? [];
      assert.deepEqual(
        peers.map((peer: Manifest) => peer.namespaceSelector.matchLabels["kubernetes.io/metadata.name"]),
        allowed,
      );
    });

    test("refers to secrets by name, and holds their texts only in the Secrets that it creates", async () => {
      const manifests = await manifestsOf(profile);
      const secrets = manifests.filter(({ kind }) => kind === "Secret");
      const values = secrets.flatMap(({ stringData }) => Object.values<string>(stringData));
      const others = JSON.stringify(manifests.filter(({ kind }) => kind !== "Secret"));
      for (const value of values) assert.ok(!others.includes(value));
      for (const { name, spec } of podsOf(manifests)) {
        for (const container of containersOf(spec)) {
          for (const variable of container.env ?? []) {
            const isSecret = /PASSWORD|TOKEN$|_KEY$/.test(variable.name);
            assert.ok(
              !isSecret || variable.valueFrom?.secretKeyRef !== undefined,
              `${variable.name} of ${name}`,
            );
          }
        }
      }
      for (const { metadata } of secrets)
        assert.equal(metadata.annotations["helm.sh/resource-policy"], "keep");
    });

    test("refers only to objects that exist", async () => {
      const manifests = await manifestsOf(profile);
      const names = (kind: string) =>
        new Set(manifests.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name));
      const accounts = names("ServiceAccount");
      const maps = names("ConfigMap");
      for (const { name, component, spec } of podsOf(manifests)) {
        if (component !== "test") assert.ok(accounts.has(spec.serviceAccountName), name);
        const volumes = new Set((spec.volumes ?? []).map((volume: Manifest) => volume.name));
        for (const container of containersOf(spec)) {
          for (const mount of container.volumeMounts ?? []) {
            assert.ok(volumes.has(mount.name) || ["data"].includes(mount.name), `${mount.name} of ${name}`);
          }
        }
        for (const volume of spec.volumes ?? []) {
          const map = volume.configMap?.name;
          assert.ok(map === undefined || maps.has(map) || map === "cluster-ca", `${map} of ${name}`);
        }
      }
    });
  });
}

describe("the images and the bus of the profile hardened", { skip }, () => {
  test("takes every image from its own registry, and some by digest", async () => {
    for (const { spec, name } of podsOf(await manifestsOf("hardened"))) {
      for (const { image } of spec.containers) {
        assert.match(image, /^registry\.example\.org\/mirror\/[^@]+@sha256:[0-9a-f]{64}$/, name);
      }
      assert.deepEqual(spec.imagePullSecrets, [{ name: "registry" }], name);
    }
  });

  test("speaks TLS with the bus, and trusts the cluster's own authority", async () => {
    const manifests = await manifestsOf("hardened");
    const config = manifests.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === `${RELEASE}-nats`,
    );
    assert.match(config?.data["nats.conf"], /tls \{\s+cert_file: \/etc\/nats\/tls\/tls\.crt/);
    const { env, volumeMounts } = podOf(manifests, "judge").containers[0];
    const authority = env.find(({ name }: Manifest) => name === "NODE_EXTRA_CA_CERTS");
    assert.equal(authority.value, "/etc/hone/ca/ca.crt");
    assert.ok(volumeMounts.some(({ mountPath }: Manifest) => mountPath === "/etc/hone/ca"));
  });
});

describe("the profile external-services", { skip }, () => {
  test("has no server and creates no Secret", async () => {
    const manifests = await manifestsOf("external-services");
    assert.deepEqual(
      manifests.filter(({ kind }) => kind === "Secret" || kind === "PersistentVolumeClaim"),
      [],
    );
    for (const component of ["nats", "postgres", "jaeger"]) {
      assert.ok(!podsOf(manifests).some((each) => each.component === component), component);
    }
    const tracer = podOf(manifests, "tracer").containers[0].env.find(
      ({ name }: Manifest) => name === "HONE_OTLP_FORWARD",
    );
    assert.equal(tracer.value, "http://collector.observability.svc.cluster.local:4318");
  });

  test("lets no pod reach the internet when models are offline", async () => {
    for (const { kind, spec } of await manifestsOf("external-services")) {
      if (kind !== "NetworkPolicy") continue;
      assert.ok(!JSON.stringify(spec).includes("0.0.0.0/0"));
    }
  });
});

describe("keys of run files", { skip }, () => {
  const set = (variable: string, host = "api.example.com") => [
    `keys[0].variable=${variable}`,
    "keys[0].secret.name=grader",
    "keys[0].secret.key=token",
    `keys[0].hosts[0]=${host}`,
  ];

  test("are given only to the service that sends them, each with its hosts", async () => {
    for (const [variable, service] of [
      ["HONE_JUDGE_KEY_GRADER", "judge"],
      ["HONE_ENDPOINT_KEY", "agent-rollout"],
      ["HONE_TOOL_WEB", "agent-rollout"],
      ["HONE_TEACHER_KEY", "trainer"],
      ["HONE_DATASET_KEY", "dataset"],
    ] as const) {
      const pods = podsOf(await render(program, { profile: "cpu", set: set(variable) }));
      const given = pods.flatMap(({ component, spec }) =>
        spec.containers.flatMap((container: Manifest) =>
          (container.env ?? [])
            .filter(({ name }: Manifest) => name.startsWith(variable))
            .map(({ name, value, valueFrom }: Manifest) => [
              component,
              name,
              value ?? valueFrom.secretKeyRef,
            ]),
        ),
      );
      assert.deepEqual(given, [
        [service, variable, { name: "grader", key: "token" }],
        [service, `${variable}_HOSTS`, "api.example.com"],
      ]);
    }
  });

  test("are refused under other names, and without hosts", async () => {
    for (const values of [set("HF_TOKEN"), set("HONE_JUDGE_KEY_HOSTS"), set("HONE_JUDGE_KEY", "*")]) {
      await assert.rejects(render(program, { profile: "cpu", set: values }));
    }
  });
});
