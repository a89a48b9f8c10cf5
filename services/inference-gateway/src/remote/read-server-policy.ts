/** A policy version for an inference server: its folder is checked here, before anything of the server is touched. */

import path from "node:path";
import {
  digestOfMerged,
  digestOfWeights,
  findBaseFolder,
  inspectAdapter,
  inspectMerged,
  isAdapterFolder,
} from "@hone/checkpoint";
import { listParameters, type ModelSpec } from "@hone/nn";
import { PolicyLoadError } from "../domain/errors.ts";
import type { PolicySource } from "../domain/inference-engine.ts";
import type { ServerFacts, ServerWeights } from "./engine-server.ts";
import { servedFolder } from "./served-folder.ts";

export interface ServerPolicy {
  readonly source: PolicySource;
  readonly weights: ServerWeights;
  /** Token ids are below it. */
  readonly vocabularySize: number;
}

/** Characters of the digest in a label: another owner's weights of the same version have another one. */
const DIGEST_CHARACTERS = 12;

/** Names the weights of a version at the server, in letters, digits, `-`, `_` and `.`: vLLM salts its cache by it. */
export function labelOf({ model, version, digest }: PolicySource): string {
  return `${model}.v${version}.${digest.slice(0, DIGEST_CHARACTERS)}`;
}

/** The version in a label of {@link labelOf}; undefined for one of another model, or of nobody. */
export function versionInLabel(label: string, model: string): number | undefined {
  const [, named, version] = /^(.+)\.v(\d+)\.[^.]+$/.exec(label) ?? [];
  return named === model ? Number(version) : undefined;
}

/**
 * @param viewFolder where what the server shall not read is left out, see served-folder.ts; undefined = it reads all.
 * @throws {PolicyLoadError} when the folder is not the announced one, or the server cannot serve it.
 */
export async function readServerPolicy(
  source: PolicySource,
  facts: ServerFacts,
  viewFolder: string | undefined,
): Promise<ServerPolicy> {
  const { model, version, folder, digest } = source;
  const refuse = (rule: string, found: string, cause?: unknown) =>
    new PolicyLoadError(`Cannot load version ${version} of ${model} as ${rule}: current value is ${found}`, {
      cause,
    });
  const unreadable = (cause: unknown): never => {
    throw refuse("its folder must be a readable model folder", folder, cause);
  };
  const found = await digestOfMerged(folder).catch(unreadable);
  if (found !== digest) throw refuse(`the SHA-256 of its weights must be ${digest}`, String(found));
  const base = source.base;
  const findBase = base === undefined ? undefined : async () => base;
  const { spec } = (await inspectMerged(folder, findBase).catch(unreadable)) as { spec: ModelSpec };
  const difference = facts.startSpec && differenceOf(spec, facts.startSpec);
  if (difference !== undefined) throw refuse(`the server was started with ${facts.startModel}`, difference);
  const label = labelOf(source);
  const vocabularySize = spec.vocabSize;
  const isAdapter = await isAdapterFolder(folder);
  if (!isAdapter)
    return { source, weights: { kind: "whole", label, folder: await served() }, vocabularySize };
  if (!facts.takesAdapters) {
    throw refuse("the server must take adapters while it runs", `${facts.name} started without them`);
  }
  await checkBase(source, facts, refuse);
  return { source, weights: { kind: "adapter", label, folder: await served() }, vocabularySize };

  function served(): Promise<string> {
    return viewFolder === undefined
      ? Promise.resolve(folder)
      : servedFolder(folder, viewFolder, label).catch(unreadable);
  }
}

/** Which tensor differs first; undefined where two models have the same ones. */
export function differenceOf(wanted: ModelSpec, served: ModelSpec): string | undefined {
  const [a, b] = [listParameters(wanted), listParameters(served)];
  const shapes = new Map(b.map(({ name, shape }) => [name, shape.join("x")]));
  for (const { name, shape } of a) {
    const other = shapes.get(name);
    if (other !== shape.join("x")) return `${name} of ${shape.join("x")}, there ${other ?? "missing"}`;
  }
  return a.length === b.length ? undefined : `${a.length} tensors, there ${b.length}`;
}

/** The server holds what the adapters were trained on: its weights where they can be read here, its name where not. */
async function checkBase(
  { folder, base }: PolicySource,
  { startModel }: ServerFacts,
  refuse: (rule: string, found: string, cause?: unknown) => PolicyLoadError,
): Promise<void> {
  const { baseDigest, base: reference } = await inspectAdapter(folder);
  const wanted = base ?? (await findBaseFolder(folder).catch(() => undefined)) ?? reference.place;
  if (path.resolve(wanted) === startModel || reference.place === startModel) return;
  const served = path.isAbsolute(startModel)
    ? await digestOfWeights(startModel).catch(() => undefined)
    : undefined;
  if (served !== undefined && served === baseDigest) return;
  throw refuse(`the server must be started with the adapters' base, ${wanted}`, startModel);
}
