/**
 * Runs the pods of a rendered chart as processes of this machine.
 *
 *   each pod has its own address in 127.0.1.0/24           hosts.ts
 *   its processes use that address and the cluster's DNS    pod-preload.ts
 *   its image is laid out by scripts/image-context.ts       lay-out-image.ts
 *   its volumes are folders, and paths are rewritten        mounts.ts
 *   it is probed and restarted as by a kubelet              pod.ts, probes.ts
 *
 * The bus is a real nats-server with the chart's configuration. PostgreSQL and Jaeger have stand-ins at their pods'
 * addresses (stand-ins.ts): their images cannot be run here.
 *
 * U1: an upgrade replaces only the pods whose template changed, in all workloads at once, as their controllers do. With
 *     maxSurge the new pod is ready before the old one is terminated; otherwise the old one ends first.
 */

import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type ChildExit, findNatsServer, logTail } from "@hone/embedded";
import { temporaryFolder } from "@hone/testing";
import type { Manifest } from "../helm.ts";
import { Addresses, type PodPlan, planPods, serviceHosts } from "./hosts.ts";
import { layOutImage } from "./lay-out-image.ts";
import { find } from "./mounts.ts";
import { Pod, type PodOptions } from "./pod.ts";
import { JaegerStandIn, PostgresStandIn } from "./stand-ins.ts";

export interface LocalClusterOptions {
  /** Components that have no pod until `start` is called, as with `replicas: 0`. */
  readonly without?: readonly string[];
  /** Called with the folder of claims before any pod starts, to prepare existing volumes. */
  readonly fillClaims?: (folder: string) => Promise<void>;
}

export interface LocalCluster extends AsyncDisposable {
  /** The manifests of the latest revision. */
  readonly manifests: readonly Manifest[];
  /** The pods by component, in the order of the manifests. */
  readonly pods: ReadonlyMap<string, Pod | PostgresStandIn>;
  readonly jaeger: JaegerStandIn;
  readonly database: PostgresStandIn;
  /** The folder that holds a folder for each claim. */
  readonly claims: string;
  addressOf(component: string): string;
  /** Reads a text of a Secret of the chart. */
  secret(name: string, key: string): string;
  /** One container of a Helm hook's pod, which the test starts itself. */
  hookPod(component: string, container: string): Pod;
  /** Starts a component that was left out, and waits until it is ready. */
  start(component: string): Promise<void>;
  /** Kills a pod with SIGKILL, starts a new one from the same manifest, and waits until it is ready. */
  replace(component: string): Promise<void>;
  /** Kills every pod at once, as when the power fails. */
  loseAll(): Promise<void>;
  /** Upgrades to these manifests (U1). @returns how the process of each replaced pod ended, by component. */
  upgrade(next: readonly Manifest[]): Promise<ReadonlyMap<string, ChildExit | undefined>>;
  /** The end of each log. */
  describe(): string;
}

/** Starts every pod at once, as a kubelet would, and waits until all are ready. */
export async function startLocalCluster(
  manifests: readonly Manifest[],
  { without = [], fillClaims }: LocalClusterOptions = {},
): Promise<LocalCluster> {
  const temporary = await temporaryFolder("chart");
  const folder = temporary.path;
  const claims = path.join(folder, "claims");
  const hostsFile = path.join(folder, "hosts.json");
  const addresses = new Addresses();
  for (const name of ["logs", "claims"]) mkdirSync(path.join(folder, name), { recursive: true });
  const nats = await findNatsServer({ fallbackCacheDir: path.join(folder, "cache") });
  const image = layOutImage(path.join(folder, "image"));
  let current = manifests;
  let revision = 1;
  let plans = planPods(manifests, addresses, revision);
  const planOf = (component: string, among = plans): PodPlan => {
    const plan = among.find((each) => each.component === component);
    if (plan === undefined) throw new Error(`the chart has no pod of ${component}`);
    return plan;
  };
  const writeHosts = () => {
    writeFileSync(`${hostsFile}.new`, JSON.stringify(serviceHosts(current, plans)));
    renameSync(`${hostsFile}.new`, hostsFile);
  };
  writeHosts();
  const podOptions = (): PodOptions => ({
    manifests: current,
    folder,
    image: [["/app", image]],
    hostsFile,
    programs: {
      node: { path: process.execPath },
      // The server must listen on the address of its pod, and not on that of all pods.
      "nats-server": { path: nats.path, extraArgs: ["--addr", "{address}"] },
    },
  });
  await fillClaims?.(claims);
  const jaeger = await JaegerStandIn.start(planOf("jaeger"));
  const database = new PostgresStandIn(planOf("postgres"), manifests, folder);
  const pods = new Map<string, Pod | PostgresStandIn>();
  for (const plan of plans) {
    if (plan.component === "jaeger" || without.includes(plan.component)) continue;
    pods.set(plan.component, plan.component === "postgres" ? database : new Pod(plan, podOptions()));
  }
  const podOf = (component: string) => {
    const pod = pods.get(component);
    if (pod === undefined) throw new Error(`no pod of ${component}`);
    return pod;
  };
  const describe = () =>
    [...pods.values()]
      .filter((pod) => pod instanceof Pod)
      .map((pod) => `${pod.plan.name} (restarts: ${pod.restarts}):\n${logTail(pod.logFile, 12)}`)
      .join("\n\n");
  const end = async () => {
    const isServer = (component: string) => component === "nats" || component === "postgres";
    const stopAll = (areServers: boolean) =>
      Promise.all([...pods].filter(([name]) => isServer(name) === areServers).map(([, pod]) => pod.stop()));
    await stopAll(false);
    await stopAll(true);
    await jaeger[Symbol.asyncDispose]();
    await temporary[Symbol.asyncDispose]();
  };
  const bringUp = async (pod: Pod | PostgresStandIn) => {
    await pod.start();
    if (pod instanceof Pod) await pod.untilReady();
  };
  const upgradePod = async (plan: PodPlan): Promise<ChildExit | undefined> => {
    const { component } = plan;
    const before = podOf(component);
    // The stand-in does not change with its manifest, whose roles it has already created.
    const after = before instanceof Pod ? new Pod(plan, podOptions()) : before;
    const goLive = () => {
      plans = plans.map((each) => (each.component === component ? plan : each));
      pods.set(component, after);
      writeHosts();
    };
    if (plan.hasSurge) {
      await bringUp(after);
      goLive();
      return before.delete();
    }
    const exit = await before.delete();
    goLive();
    await bringUp(after);
    return exit;
  };
  try {
    await Promise.all([...pods.values()].map(bringUp));
  } catch (error) {
    const logs = describe();
    await end();
    throw new Error(`the rendered chart does not come up\n${logs}`, { cause: error });
  }
  return {
    get manifests() {
      return current;
    },
    pods,
    jaeger,
    database,
    claims,
    addressOf: (component) => planOf(component).address,
    secret: (name, key) => find(current, "Secret", name).stringData[key],
    hookPod(component, container) {
      const pod = current.find(
        ({ kind, metadata }) =>
          kind === "Pod" && metadata.labels["app.kubernetes.io/component"] === component,
      );
      if (pod === undefined) throw new Error(`the chart has no hook of ${component}`);
      const { name, labels } = pod.metadata;
      const address = planOf("dataset").address;
      const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].filter(
        (each) => each.name === container,
      );
      if (containers.length === 0) throw new Error(`the hook of ${component} has no container ${container}`);
      const spec = { ...pod.spec, containers };
      const plan = { name, component, address, labels, hasSurge: false, spec, claims: [] };
      return new Pod(plan, podOptions());
    },
    async start(component) {
      const pod = new Pod(planOf(component), podOptions());
      pods.set(component, pod);
      await bringUp(pod);
    },
    async replace(component) {
      const pod = podOf(component);
      await pod.kill();
      await bringUp(pod);
    },
    async loseAll() {
      await Promise.all([...pods.values()].map((pod) => pod.kill()));
    },
    async upgrade(next) {
      const before = templatesOf(current);
      const changed = [...templatesOf(next)].filter(([name, text]) => before.get(name) !== text);
      current = next;
      revision++;
      const planned = planPods(next, addresses, revision);
      const components = changed.map(([name]) => name).filter((name) => pods.has(name));
      const ends = components.map(
        async (component) => [component, await upgradePod(planOf(component, planned))] as const,
      );
      return new Map(await Promise.all(ends));
    },
    describe,
    [Symbol.asyncDispose]: end,
  };
}

/** Pod templates by component. */
function templatesOf(manifests: readonly Manifest[]): ReadonlyMap<string, string> {
  const workloads = manifests.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
  return new Map(
    workloads.map(({ spec: { template } }) => [
      template.metadata.labels["app.kubernetes.io/component"],
      JSON.stringify(template),
    ]),
  );
}
