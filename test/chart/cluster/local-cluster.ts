/**
 * The pods of a rendered chart as processes of this machine.
 *
 *   each pod has an address of its own in 127.0.1.0/24     hosts.ts
 *   its processes see that address and the cluster's DNS    pod-preload.ts
 *   its image is what scripts/image-context.ts lays out, with the packages that are installed here
 *   its volumes are folders, its files rewritten            mounts.ts
 *   it is probed and restarted as by a kubelet              pod.ts, probes.ts
 *
 * The bus is a real nats-server with the chart's own configuration. PostgreSQL and Jaeger have stand-ins at their pods'
 * addresses (stand-ins.ts): their images cannot be run here.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findNatsServer, logTail } from "@hone/embedded";
import { temporaryFolder } from "@hone/testing";
import type { Manifest } from "../helm.ts";
import { type PodPlan, planPods, serviceHosts } from "./hosts.ts";
import { find } from "./mounts.ts";
import { Pod, type PodOptions } from "./pod.ts";
import { JaegerStandIn, PostgresStandIn } from "./stand-ins.ts";

const REPOSITORY = path.resolve(import.meta.dirname, "..", "..", "..");
const LAY_OUT_TIMEOUT_MS = 60_000;

export interface LocalCluster extends AsyncDisposable {
  readonly manifests: readonly Manifest[];
  /** By component, in the order of the manifests. */
  readonly pods: ReadonlyMap<string, Pod | PostgresStandIn>;
  readonly jaeger: JaegerStandIn;
  readonly database: PostgresStandIn;
  /** Where a claim lies. */
  claimFolder(claim: string): string;
  addressOf(component: string): string;
  /** Of a Secret of the chart. */
  secret(name: string, key: string): string;
  /** The pod of a Helm hook, to be started by hand. */
  hookPod(component: string): Pod;
  /** SIGKILL, a new pod by the same manifest, and the wait until it is ready. */
  replace(component: string): Promise<void>;
  /** The end of each log. */
  describe(): string;
}

/** Starts every pod at once, as a kubelet would, and waits until all are ready. */
export async function startLocalCluster(manifests: readonly Manifest[]): Promise<LocalCluster> {
  const temporary = await temporaryFolder("chart");
  const folder = temporary.path;
  const plans = planPods(manifests);
  const hostsFile = path.join(folder, "hosts.json");
  mkdirSync(path.join(folder, "logs"), { recursive: true });
  writeFileSync(hostsFile, JSON.stringify(serviceHosts(manifests, plans)));
  const nats = await findNatsServer({ fallbackCacheDir: path.join(folder, "cache") });
  const options: PodOptions = {
    manifests,
    folder,
    image: [["/app", layOutImage(path.join(folder, "image"))]],
    hostsFile,
    programs: {
      node: { path: process.execPath },
      // A pod's server listens on the pod's addresses; here they are told apart by this.
      "nats-server": { path: nats.path, extraArgs: ["--addr", "{address}"] },
    },
  };
  const planOf = (component: string): PodPlan => {
    const plan = plans.find((each) => each.component === component);
    if (plan === undefined) throw new Error(`the chart has no pod of ${component}`);
    return plan;
  };
  const jaeger = await JaegerStandIn.start(planOf("jaeger"));
  const database = new PostgresStandIn(planOf("postgres"), manifests, folder);
  const pods = new Map<string, Pod | PostgresStandIn>();
  for (const plan of plans) {
    if (plan.component === "jaeger") continue;
    pods.set(plan.component, plan.component === "postgres" ? database : new Pod(plan, options));
  }
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
  try {
    await Promise.all([...pods.values()].map(bringUp));
  } catch (error) {
    const logs = describe();
    await end();
    throw new Error(`the rendered chart does not come up\n${logs}`, { cause: error });
  }
  return {
    manifests,
    pods,
    jaeger,
    database,
    claimFolder: (claim) => path.join(folder, "claims", claim),
    addressOf: (component) => planOf(component).address,
    secret: (name, key) => find(manifests, "Secret", name).stringData[key],
    hookPod(component) {
      const pod = manifests.find(
        ({ kind, metadata }) =>
          kind === "Pod" && metadata.labels["app.kubernetes.io/component"] === component,
      );
      if (pod === undefined) throw new Error(`the chart has no hook of ${component}`);
      const address = planOf("dataset").address;
      const { name, labels } = pod.metadata;
      return new Pod({ name, component, address, labels, spec: pod.spec, claims: [] }, options);
    },
    async replace(component) {
      const pod = pods.get(component);
      if (pod === undefined) throw new Error(`no pod of ${component}`);
      await pod.kill();
      await bringUp(pod);
    },
    describe,
    [Symbol.asyncDispose]: end,
  };
}

/** The files of the services' image. Of `node_modules` everything is there but Hone's own packages, which are the image's. */
function layOutImage(folder: string): string {
  execFileSync(process.execPath, [path.join(REPOSITORY, "scripts", "image-context.ts"), folder], {
    timeout: LAY_OUT_TIMEOUT_MS,
  });
  const modules = path.join(REPOSITORY, "node_modules");
  const own = path.join(folder, "node_modules");
  mkdirSync(path.join(own, "@hone"), { recursive: true });
  for (const name of readdirSync(modules)) {
    if (name !== "@hone" && name !== ".bin") symlinkSync(path.join(modules, name), path.join(own, name));
  }
  for (const group of ["libs", "services", "apps"]) {
    for (const name of readdirSync(path.join(folder, group))) {
      symlinkSync(path.join(folder, group, name), path.join(own, "@hone", name));
    }
  }
  return folder;
}
