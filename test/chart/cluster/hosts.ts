/** Which pods a rendered chart asks for, on which address each of them is, and what the cluster's DNS says of services. */

import type { Manifest } from "../helm.ts";

/** A pod that the manifests ask for. */
export interface PodPlan {
  readonly name: string;
  readonly component: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Whether its successor comes up before it ends, as a Deployment's does that surges. */
  readonly hasSurge: boolean;
  readonly spec: Manifest;
  /** Claim templates of its StatefulSet. */
  readonly claims: readonly string[];
}

/** Addresses of one network; 127.0.0.0/8 is this machine's on Linux. */
const NETWORK = "127.0.1";
const FIRST_HOST = 10;

/** Who has which address: a pod keeps the one that its name got first. */
export class Addresses {
  readonly #byName = new Map<string, string>();

  of(name: string): string {
    const known = this.#byName.get(name) ?? `${NETWORK}.${FIRST_HOST + this.#byName.size}`;
    this.#byName.set(name, known);
    return known;
  }
}

/**
 * Every pod of the workloads of a release, and none of Helm's hooks.
 * @param revision of the release: an upgrade's pods of a Deployment are others, those of a StatefulSet keep their names.
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
      // A Deployment's pods have random ends; an order does as well.
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

/** Name -> addresses, as the cluster's DNS has it: `service.namespace.svc.cluster.local`, and a pod below a headless one. */
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
