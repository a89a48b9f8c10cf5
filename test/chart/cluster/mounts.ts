/**
 * Makes a pod's volumes as folders of this machine, and its container's environment.
 *
 * A container has its volumes at its own paths. Here the folders are elsewhere, so each such path is rewritten wherever the
 * manifest gives it to a program: in arguments, variables and files of ConfigMaps.
 */

import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Manifest } from "../helm.ts";
import type { PodPlan } from "./hosts.ts";

/** A path of the container, and the same on this machine. */
export type PathMap = readonly (readonly [string, string])[];

export interface MountOptions {
  readonly manifests: readonly Manifest[];
  /** The folder for all of the cluster's files. */
  readonly folder: string;
  /** Paths that are part of the image. */
  readonly image: PathMap;
}

/** Makes the volumes of a new pod: claims keep their files, and everything else is empty. */
export async function mountVolumes(
  pod: PodPlan,
  container: Manifest,
  options: MountOptions,
): Promise<PathMap> {
  const { manifests, folder, image } = options;
  const own = path.join(folder, "pods", pod.name);
  await rm(own, { recursive: true, force: true });
  const places: [string, string][] = [];
  for (const mount of container.volumeMounts ?? []) {
    places.push([mount.mountPath, placeOf(mount.name)]);
  }
  const map = [...image, ...places].sort(([one], [other]) => other.length - one.length);
  for (const mount of container.volumeMounts ?? []) {
    const volume = volumeOf(mount.name);
    const place = placeOf(mount.name);
    await mkdir(place, { recursive: true });
    const texts = volume?.secret
      ? find(manifests, "Secret", volume.secret.secretName).stringData
      : volume?.configMap
        ? find(manifests, "ConfigMap", volume.configMap.name).data
        : {};
    for (const [name, text] of Object.entries<string>(texts ?? {})) {
      await writeFile(path.join(place, name), volume?.configMap ? rewrite(text, map) : text, { mode: 0o600 });
    }
  }
  return map;

  function volumeOf(name: string): Manifest | undefined {
    return (pod.spec.volumes ?? []).find((volume: Manifest) => volume.name === name);
  }
  function placeOf(name: string): string {
    if (pod.claims.includes(name)) return path.join(folder, "claims", `${name}-${pod.name}`);
    const claim = volumeOf(name)?.persistentVolumeClaim?.claimName;
    if (claim === undefined) return path.join(own, name);
    find(manifests, "PersistentVolumeClaim", claim); // throws for a claim that does not exist, with which a pod would never start
    return path.join(folder, "claims", claim);
  }
}

/** Replaces each path of the container by that of this machine; the longest matching path counts. */
export function rewrite(text: string, map: PathMap): string {
  const paths = map.map(([from]) => from.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(`(?<![\\w.@/-])(?:${paths.join("|")})(?![\\w.-])`, "g");
  return text.replace(pattern, (found) => map.find(([from]) => from === found)?.[1] ?? found);
}

/** The container's variables and no others, so that the program lacks what the manifest lacks. */
export function containerEnvironment(
  pod: PodPlan,
  container: Manifest,
  manifests: readonly Manifest[],
  map: PathMap,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const { name, value, valueFrom } of container.env ?? []) {
    const text = value ?? readFrom(valueFrom);
    env[name] = rewrite(
      text.replace(/\$\((\w+)\)/g, (whole: string, other: string) => env[other] ?? whole),
      map,
    );
  }
  return env;

  function readFrom(from: Manifest): string {
    if (from.fieldRef?.fieldPath === "metadata.name") return pod.name;
    if (from.fieldRef?.fieldPath === "status.podIP") return pod.address;
    const { name, key } = from.secretKeyRef ?? {};
    const found = find(manifests, "Secret", name).stringData?.[key];
    if (found === undefined) throw new Error(`the Secret ${name} has no key ${key}, which ${pod.name} needs`);
    return found;
  }
}

/** Finds an object. @throws if it does not exist, as Kubernetes would then never start the pod. */
export function find(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`the chart has no ${kind} ${name}`);
  return found;
}
