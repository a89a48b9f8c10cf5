/** Tests which pods may connect to which, by evaluating the network policies of the profiles for every pair of pods. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Manifest, render } from "./helm.ts";
import { type AskedPod, manifestsOf, podOf, podsOf, program, SERVICES, skip } from "./profiles.ts";

/** Clients of the bus in every profile that has one; the pod of `helm test` publishes a run if the engines are onnx. */
const CLIENTS_OF_NATS = [...SERVICES, "test"].map((name) => `${name} -> nats:4222`);
const CLIENTS_OF_POSTGRES = ["trainer", "tracer"].map((name) => `${name} -> postgres:5432`);
const TO_TRACER = SERVICES.map((name) => `${name} -> tracer:8080`);
const JAEGER_PORTS = [4317, 4318];
const ANY = "any";

describe("between the pods of a release", { skip }, () => {
  test("with spans through the tracer, pods reach only bus, database, tracer and Jaeger", async () => {
    const toJaeger = JAEGER_PORTS.map((port) => `tracer -> jaeger:${port}`);
    assert.deepEqual(
      edgesOf(await manifestsOf("cpu")),
      [...CLIENTS_OF_NATS, ...CLIENTS_OF_POSTGRES, ...TO_TRACER, ...toJaeger].sort(),
    );
  });

  test("with spans sent directly to Jaeger, no pod reaches the tracer", async () => {
    const manifests = await render(program, { profile: "cpu", set: ["telemetry.route=straight"] });
    const toJaeger = SERVICES.flatMap((name) => JAEGER_PORTS.map((port) => `${name} -> jaeger:${port}`));
    assert.deepEqual(edgesOf(manifests), [...CLIENTS_OF_NATS, ...CLIENTS_OF_POSTGRES, ...toJaeger].sort());
  });

  test("a tracer with its own database does not reach the trainer's", async () => {
    const set = ["tracer.database.existingSecret=page-database"];
    const edges = edgesOf(await render(program, { profile: "cpu", set }));
    assert.deepEqual(
      edges.filter((edge) => edge.includes("-> postgres")),
      ["trainer -> postgres:5432"],
    );
  });

  test("no pod may reach an engine server in another pod", async () => {
    for (const profile of ["vllm-fsdp2", "sglang-fsdp2", "multi-node"]) {
      const edges = edgesOf(await manifestsOf(profile));
      assert.deepEqual(
        edges.filter((edge) => edge.includes("-> inference-gateway")),
        [],
        profile,
      );
    }
  });

  test("servers of the bus reach each other if there are several", async () => {
    const edges = edgesOf(await manifestsOf("hardened"));
    assert.ok(edges.includes("nats -> nats:6222"));
    assert.ok(!edgesOf(await manifestsOf("cpu")).some((edge) => edge.startsWith("nats ->")));
  });
});

describe("from outside the release", { skip }, () => {
  test("gives the only pod the address at which agents outside of the cluster reach it", async () => {
    const manifests = await render(program, { set: ["agentRollout.sessionUrl=https://agents.example.org"] });
    const { env } = podOf(manifests, "agent-rollout").containers[0];
    const { value } = env.find(({ name }: Manifest) => name === "HONE_SESSION_URL");
    assert.equal(value, "https://agents.example.org");
  });

  test("only agents reach agent-rollout's session port, browsers the pages, and KEDA the bus's monitor", async () => {
    assert.deepEqual(fromOutside(await manifestsOf("cpu")), []);
    assert.deepEqual(fromOutside(await manifestsOf("sglang-fsdp2")), ["keda -> nats:8222"]);
    const metrics = [...SERVICES.map((name) => `monitoring -> ${name}:8080`), "monitoring -> nats:8222"];
    assert.deepEqual(
      fromOutside(await manifestsOf("hardened")),
      [
        ...metrics,
        "agents -> agent-rollout:8080",
        "ingress -> tracer:8080",
        "ingress -> jaeger:16686",
      ].sort(),
    );
  });

  test("only pods that fetch models reach the internet, and none if the hub is offline", async () => {
    const reach = (manifests: readonly Manifest[]) =>
      podsOf(manifests)
        .filter((pod) => JSON.stringify(rulesOf(manifests, pod, "egress")).includes("0.0.0.0/0"))
        .map(({ component }) => component)
        .sort();
    assert.deepEqual(reach(await manifestsOf("cpu")), ["dataset", "inference-gateway", "trainer"]);
    assert.deepEqual(reach(await manifestsOf("hardened")), []);
  });
});

type Direction = "ingress" | "egress";

/** Rules of all policies that select a pod. A pod without a policy would be open, but the default-deny policy selects all. */
function rulesOf(manifests: readonly Manifest[], pod: AskedPod, direction: Direction): Manifest[] {
  const policies = manifests.filter(
    ({ kind, spec }) => kind === "NetworkPolicy" && selects(spec.podSelector, pod.labels),
  );
  const wanted = direction === "ingress" ? "Ingress" : "Egress";
  assert.ok(
    policies.some(({ spec }) => spec.policyTypes.includes(wanted)),
    `${pod.name} has no policy of ${wanted}`,
  );
  return policies.flatMap(({ spec }) => spec[direction] ?? []);
}

/** `from -> to:port` for each connection that the sender's egress and the receiver's ingress allow. */
function edgesOf(manifests: readonly Manifest[]): string[] {
  const pods = podsOf(manifests);
  const edges = pods.flatMap((from) =>
    pods.flatMap((to) => {
      const out = portsAllowed(rulesOf(manifests, from, "egress"), "to", from, to);
      const into = portsAllowed(rulesOf(manifests, to, "ingress"), "from", to, from);
      // Egress rules name the receiver's ports by number; ingress rules may also use their names.
      const ports = out.has(ANY)
        ? into
        : into.has(ANY)
          ? out
          : new Set([...out].filter((port) => into.has(port)));
      return [...ports].map((port) => `${from.component} -> ${to.component}:${port}`);
    }),
  );
  return [...new Set(edges)].sort();
}

/** The receiver's ports that rules open for a peer; a rule without ports opens all. */
function portsAllowed(
  rules: readonly Manifest[],
  side: "from" | "to",
  own: AskedPod,
  peer: AskedPod,
): Set<number | typeof ANY> {
  const receiver = side === "from" ? own : peer;
  const open = rules.filter((rule) =>
    (rule[side] ?? []).some(
      ({ podSelector, namespaceSelector, ipBlock }: Manifest) =>
        podSelector !== undefined &&
        namespaceSelector === undefined &&
        ipBlock === undefined &&
        selects(podSelector, peer.labels),
    ),
  );
  const ports = open.flatMap((rule): (number | typeof ANY)[] =>
    rule.ports === undefined ? [ANY] : rule.ports.map(({ port }: Manifest) => numberOf(port, receiver)),
  );
  return new Set(ports);
}

/** `namespace -> component:port` for each peer in another namespace. */
function fromOutside(manifests: readonly Manifest[]): string[] {
  const edges = podsOf(manifests).flatMap((pod) =>
    rulesOf(manifests, pod, "ingress").flatMap((rule) =>
      (rule.from as Manifest[])
        .filter(({ namespaceSelector }) => namespaceSelector !== undefined)
        .flatMap(({ namespaceSelector }) =>
          (rule.ports as Manifest[]).map(({ port }) => {
            const namespace = namespaceSelector.matchLabels["kubernetes.io/metadata.name"];
            return `${namespace} -> ${pod.component}:${numberOf(port, pod)}`;
          }),
        ),
    ),
  );
  return [...new Set(edges)].sort();
}

function numberOf(port: number | string, { spec, name }: AskedPod): number {
  if (typeof port === "number") return port;
  const ports = spec.containers.flatMap((container: Manifest) => container.ports ?? []);
  const found = ports.find((each: Manifest) => each.name === port);
  assert.ok(found !== undefined, `${name} has no port ${port}`);
  return found.containerPort;
}

function selects({ matchLabels = {}, matchExpressions = [] }: Manifest, labels: AskedPod["labels"]): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }: Manifest) => {
      assert.equal(operator, "In");
      return values.includes(labels[key]);
    })
  );
}
