/** Checks the folder of a policy version for an inference server, before anything at the server changes. */

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
  /** All token ids are below it. */
  readonly vocabularySize: number;
}

/** Characters of the digest in a label, so that other weights of the same version have another label. */
const DIGEST_CHARACTERS = 12;

/** Names the weights of a version at the server, in letters, digits, `-`, `_` and `.`: vLLM salts its cache by it. */
export function labelOf({ model, version, digest }: PolicySource): string {
  return `${model}.v${version}.${digest.slice(0, DIGEST_CHARACTERS)}`;
}

/** The version in a label of {@link labelOf}; undefined for the label of another model, or one that is not ours. */
export function versionInLabel(label: string, model: string): number | undefined {
  const [, named, version] = /^(.+)\.v(\d+)\.[^.]+$/.exec(label) ?? [];
  return named === model ? Number(version) : undefined;
}

/**
 * @param viewFolder folder for links to the files that the server must read (served-folder.ts); undefined = it reads the folder itself.
 * @throws {PolicyLoadError} when the folder does not hold the announced weights, or the server cannot serve them.
 */
export async function readServerPolicy(
  source: PolicySource,
  facts: ServerFacts,
  viewFolder: string | undefined,
): Promise<ServerPolicy> {
  const { model, version, folder, digest } = source;
  const refusal = (problem: string, cause?: unknown) =>
    new PolicyLoadError(`Cannot load version ${version} of ${model}: ${problem}`, { cause });
  const unreadable = (cause: unknown): never => {
    throw refusal(`its folder ${folder} is not a readable model folder`, cause);
  };
  const found = await digestOfMerged(folder).catch(unreadable);
  if (found !== digest) throw refusal(`the SHA-256 of its weights is ${found}; it must be ${digest}`);
  const base = source.base;
  const findBase = base === undefined ? undefined : async () => base;
  const { spec } = (await inspectMerged(folder, findBase).catch(unreadable)) as { spec: ModelSpec };
  const difference = facts.startSpec && differenceOf(spec, facts.startSpec);
  if (difference !== undefined) {
    throw refusal(
      `it must have the tensors of ${facts.startModel}, which the server serves, but has ${difference}`,
    );
  }
  const label = labelOf(source);
  const vocabularySize = spec.vocabSize;
  const isAdapter = await isAdapterFolder(folder);
  if (!isAdapter)
    return { source, weights: { kind: "whole", label, folder: await served() }, vocabularySize };
  if (!facts.takesAdapters) {
    throw refusal(`the server must take adapters while it runs, but ${facts.name} was started without them`);
  }
  await checkBase(source, facts, refusal);
  return { source, weights: { kind: "adapter", label, folder: await served() }, vocabularySize };

  function served(): Promise<string> {
    return viewFolder === undefined
      ? Promise.resolve(folder)
      : servedFolder(folder, viewFolder, label).catch(unreadable);
  }
}

/** The first tensor that differs; undefined if the two models have the same tensors. */
export function differenceOf(wanted: ModelSpec, served: ModelSpec): string | undefined {
  const [a, b] = [listParameters(wanted), listParameters(served)];
  const shapes = new Map(b.map(({ name, shape }) => [name, shape.join("x")]));
  for (const { name, shape } of a) {
    const other = shapes.get(name);
    if (other !== shape.join("x")) return `${name} of ${shape.join("x")}, there ${other ?? "missing"}`;
  }
  return a.length === b.length ? undefined : `${a.length} tensors, there ${b.length}`;
}

/** Checks that the server holds the base of the adapters: by its weights if they can be read here, and else by its name. */
async function checkBase(
  { folder, base }: PolicySource,
  { startModel }: ServerFacts,
  refusal: (problem: string) => PolicyLoadError,
): Promise<void> {
  const { baseDigest, base: reference } = await inspectAdapter(folder);
  const wanted = base ?? (await findBaseFolder(folder).catch(() => undefined)) ?? reference.place;
  if (path.resolve(wanted) === startModel || reference.place === startModel) return;
  const served = path.isAbsolute(startModel)
    ? await digestOfWeights(startModel).catch(() => undefined)
    : undefined;
  if (served !== undefined && served === baseDigest) return;
  throw refusal(
    `the server was started with ${startModel}; it must be started with the adapters' base, ${wanted}`,
  );
}
