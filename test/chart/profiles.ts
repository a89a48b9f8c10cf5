/** The profiles of the chart as helm renders them, for tests that look into their manifests. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { CHART, findHelm, type Manifest, podTemplatesOf, type RenderOptions, render } from "./helm.ts";

/** What `helm install` makes without any values. */
export const DEFAULTS = "defaults";
export const PROFILES = [
  DEFAULTS,
  ...readdirSync(path.join(CHART, "ci")).map((name) => path.basename(name, ".yaml")),
];
export const SERVICES = ["dataset", "agent-rollout", "inference-gateway", "judge", "trainer", "tracer"];
const WORKLOADS = ["Deployment", "StatefulSet", "LeaderWorkerSet"];

const found = await findHelm();
/** Why tests of the chart are skipped, if they are. */
export const skip = found.kind === "missing" ? found.why : false;
/** Path of helm. */
export const program = found.kind === "found" ? found.program : "";

/** The profiles that a test file speaks of, each rendered once. */
const rendered = new Map<string, Promise<Manifest[]>>();
export function manifestsOf(profile: string): Promise<Manifest[]> {
  const known = rendered.get(profile) ?? render(program, optionsOf(profile));
  rendered.set(profile, known);
  return known;
}

/** How helm is given a profile. */
export function optionsOf(profile: string): RenderOptions {
  return profile === DEFAULTS ? {} : { profile };
}

/** A pod that manifests ask for. */
export interface AskedPod {
  /** Of its workload. */
  readonly name: string;
  readonly component: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Manifest;
}

/** Every pod that manifests ask for, one of each template, hooks included. */
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

/** Every container of a pod: those that run before the others, and the others. */
export function containersOf(spec: Manifest): Manifest[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

/** The one object of a kind and a name. */
export function objectOf(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const object = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  assert.ok(object !== undefined, `no ${kind} ${name}`);
  return object;
}
