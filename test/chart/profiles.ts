/** Renders the profiles of the chart, for tests of their manifests. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { CHART, findHelm, type Manifest, podTemplatesOf, type RenderOptions, render } from "./helm.ts";

/** The profile of `helm install` without any values. */
export const DEFAULTS = "defaults";
export const PROFILES = [
  DEFAULTS,
  ...readdirSync(path.join(CHART, "ci")).map((name) => path.basename(name, ".yaml")),
];
export const SERVICES = ["dataset", "agent-rollout", "inference-gateway", "judge", "trainer", "tracer"];
const WORKLOADS = ["Deployment", "StatefulSet", "LeaderWorkerSet"];

const found = await findHelm();
/** Why tests of the chart are skipped; false if they run. */
export const skip = found.kind === "missing" ? found.why : false;
/** Path of helm. */
export const program = found.kind === "found" ? found.program : "";

/** The manifests of a profile, which each test file renders once. */
const rendered = new Map<string, Promise<Manifest[]>>();
export function manifestsOf(profile: string): Promise<Manifest[]> {
  const known = rendered.get(profile) ?? render(program, optionsOf(profile));
  rendered.set(profile, known);
  return known;
}

/** The options with which helm renders a profile. */
export function optionsOf(profile: string): RenderOptions {
  return profile === DEFAULTS ? {} : { profile };
}

/** A pod that the manifests define. */
export interface AskedPod {
  /** Kind of its workload. */
  readonly name: string;
  readonly component: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Manifest;
}

/** Every pod of the manifests, one for each template, including hooks. */
export function podsOf(manifests: readonly Manifest[]): AskedPod[] {
  return manifests.flatMap((manifest) => {
    const templates = WORKLOADS.includes(manifest.kind)
      ? podTemplatesOf(manifest)
      : manifest.kind === "Pod"
        ? [manifest]
        : [];
    return templates.map(({ metadata, spec }) => ({
      name: manifest.metadata.name,
      component: metadata.labels["app.kubernetes.io/component"],
      labels: metadata.labels,
      spec,
    }));
  });
}

export function podOf(manifests: readonly Manifest[], component: string): Manifest {
  const pod = podsOf(manifests).find((each) => each.component === component);
  assert.ok(pod !== undefined, `no pod of ${component}`);
  return pod.spec;
}

/** Every container of a pod, including init containers. */
export function containersOf(spec: Manifest): Manifest[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

/** The object of a kind and a name. */
export function objectOf(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const object = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  assert.ok(object !== undefined, `no ${kind} ${name}`);
  return object;
}
