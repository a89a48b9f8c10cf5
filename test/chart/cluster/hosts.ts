/** Plans the pods of a rendered chart, their addresses, and the cluster's DNS. */

import type { Manifest } from "../helm.ts";

/** A pod that the manifests define. */
export interface PodPlan {
  readonly name: string;
  readonly component: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether its replacement starts before it ends, as with maxSurge of a Deployment. */
  readonly hasSurge: boolean;
  readonly spec: Manifest;
  /** Claim templates of its StatefulSet. */
  readonly claims: readonly string[];
}

/** Addresses of one network; 127.0.0.0/8 is this machine's on Linux. */
const NETWORK = "127.0.1";
const FIRST_HOST = 10;

/** Gives each name of a pod an address, which it keeps. */
export class Addresses {
  readonly #byName = new Map<string, string>();

  of(name: string): string {
    const known = this.#byName.get(name) ?? `${NETWORK}.${FIRST_HOST + this.#byName.size}`;
    this.#byName.set(name, known);
    return known;
  }
}

/**
 * Lists every pod of the workloads of a release, without Helm's hooks.
 * @param revision revision of the release. Pods of a Deployment get new names with each; pods of a StatefulSet keep them.
 */
export function planPods(
  manifests: readonly Manifest[],
  addresses = new Addresses(),
  revision = 1,
): PodPlan[] {
  const workloads = manifests.filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet");
  return workloads.flatMap((workload) => {
    const { template, replicas = 1, volumeClaimTemplates = [] } = workload.spec;
    return Array.from({ length: replicas }, (_, index) => {
      // Names of a Deployment's pods end randomly; here they end with a number.
      const end = workload.kind === "Deployment" ? `r${revision}-${index}` : index;
      const name = `${workload.metadata.name}-${end}`;
      const labels = { ...template.metadata.labels, "statefulset.kubernetes.io/pod-name": name };
      return {
        name,
        component: labels["app.kubernetes.io/component"],
        address: addresses.of(name),
        labels,
        hasSurge: workload.kind === "Deployment" && workload.spec.strategy?.rollingUpdate?.maxSurge > 0,
        spec: template.spec,
        claims: volumeClaimTemplates.map((claim: Manifest) => claim.metadata.name),
      };
    });
  });
}

/** The cluster's DNS, from name to addresses: services as `service.namespace.svc.cluster.local`, and pods of headless services. */
export function serviceHosts(
  manifests: readonly Manifest[],
  pods: readonly PodPlan[],
  clusterDomain = "cluster.local",
): Record<string, string[]> {
  const hosts: Record<string, string[]> = {};
  for (const { metadata, spec } of manifests.filter(({ kind }) => kind === "Service")) {
    const host = `${metadata.name}.${metadata.namespace}.svc.${clusterDomain}`;
    const behind = pods.filter(({ labels }) =>
      Object.entries(spec.selector).every(([key, value]) => labels[key] === value),
    );
    hosts[host] = behind.map(({ address }) => address);
    if (spec.clusterIP === "None") {
      for (const pod of behind) hosts[`${pod.name}.${host}`] = [pod.address];
    }
  }
  return hosts;
}
