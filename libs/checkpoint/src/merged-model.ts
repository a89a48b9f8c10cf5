/**
 * Models as folders of either kind give them: a checkpoint as it is, a PEFT folder merged into its base:
 *
 *   W + (alpha / r) B A
 *
 * The product is computed by one graph in a fixed order, so that the same adapter and base give the same bits.
 */
import path from "node:path";
import { adaptedParameter, type LoraSpec, listAdapterParameters, type ModelSpec } from "@hone/nn";
import { Add, FusedMatMul, Graph, GraphSession } from "@hone/tensor";
import { ADAPTER_FILE, inspectAdapter, isAdapterFolder, loadAdapter, locateAdapter } from "./adapter.ts";
import type { BaseReference } from "./adapter-config.ts";
import { inspectModel, type LoadedModel, loadCompanions, loadModel } from "./checkpoint.ts";
import {
  digestOfWeights,
  locateWeights,
  type TensorPlace,
  type WeightAllocator,
} from "./checkpoint-weights.ts";
import { CheckpointError } from "./errors.ts";
import { SafeTensorsReader } from "./safetensors/reader.ts";

/** Finds the folder of a base model that an adapter names by an id of the hub. */
export type FindBase = (base: BaseReference) => Promise<string>;

export interface LoadMergedOptions {
  /** Makes the array of a parameter, for weights that threads share. */
  readonly allocate?: WeightAllocator;
  /** Absent = only bases that are folders are found. */
  readonly findBase?: FindBase;
}

/**
 * Reads a model, merging its adapters where the folder holds some.
 * @returns the digest is that of the folder's own weights.
 * @throws CheckpointError as `loadModel` does, and where the base is missing or not the one that the adapters belong to.
 */
export async function loadMerged(
  folder: string,
  { allocate, findBase }: LoadMergedOptions = {},
): Promise<LoadedModel> {
  const base = await findBaseFolder(folder, findBase);
  if (base === undefined) return loadModel(folder, allocate);
  const { baseDigest } = await inspectAdapter(folder);
  const model = await loadModel(base, allocate);
  requireBase(folder, baseDigest, model.digest);
  const { lora, weights, digest } = await loadAdapter(folder, model.spec);
  await mergeAdapters(model.spec, lora, model.weights, weights);
  return { ...model, companions: { ...model.companions, ...(await loadCompanions(folder)) }, digest };
}

/** Reads everything of a model but its weights, as `inspectModel` does, of a folder of either kind. */
export async function inspectMerged(
  folder: string,
  findBase?: FindBase,
): Promise<Omit<LoadedModel, "weights" | "digest">> {
  const base = await findBaseFolder(folder, findBase);
  if (base === undefined) return inspectModel(folder);
  const model = await inspectModel(base);
  return { ...model, companions: { ...model.companions, ...(await loadCompanions(folder)) } };
}

/**
 * The folder of the model that a folder's adapters belong to; undefined where it holds none.
 * @param findBase undefined = only bases that are folders are found.
 * @throws CheckpointError where the base is none of them, or the folder does not say which it is.
 */
export async function findBaseFolder(folder: string, findBase?: FindBase): Promise<string | undefined> {
  if (!(await isAdapterFolder(folder))) return undefined;
  const { base } = await inspectAdapter(folder);
  // A file from outside may name any folder: whoever has rules about folders gives a `findBase`, which knows them.
  const place = base.place.startsWith(".") ? path.resolve(folder, base.place) : base.place;
  if (findBase !== undefined) return findBase({ ...base, place });
  if (path.isAbsolute(place)) return place;
  throw new CheckpointError(folder, "its base model is a folder of this machine", base.place);
}

/** The digest that {@link loadMerged} gives, without the numbers. */
export async function digestOfMerged(folder: string): Promise<string> {
  if (!(await isAdapterFolder(folder))) return digestOfWeights(folder);
  await using reader = await SafeTensorsReader.open(path.join(folder, ADAPTER_FILE));
  return await reader.readInto(() => undefined);
}

/** Where the numbers of a parameter lie, and of the adapter that is added to it. */
export interface MergedPlace extends TensorPlace {
  /** factor B A */
  readonly merged?: { readonly a: TensorPlace; readonly b: TensorPlace; readonly factor: number };
}

/** Where the numbers that {@link loadMerged} gives lie, for whoever reads them itself. @throws CheckpointError as it does. */
export async function locateMerged(
  folder: string,
  spec: ModelSpec,
  findBase?: FindBase,
): Promise<MergedPlace[]> {
  const base = await findBaseFolder(folder, findBase);
  if (base === undefined) return locateWeights(folder, spec);
  const { lora, baseDigest, places } = await locateAdapter(folder, spec);
  if (baseDigest !== undefined) requireBase(folder, baseDigest, await digestOfWeights(base));
  const halves = new Map(places.map((place) => [place.name, place]));
  const merged = new Map<string, Required<MergedPlace>["merged"]>();
  for (const { name } of places) {
    const target = adaptedParameter(name)!;
    const half = (part: string) => halves.get(name.replace(/lora_[AB]\.weight$/, `${part}.weight`))!;
    merged.set(target, { a: half("lora_A"), b: half("lora_B"), factor: lora.alpha / lora.rank });
  }
  return (await locateWeights(base, spec)).map((place) => {
    const adapter = merged.get(place.name);
    return adapter === undefined ? place : { ...place, merged: adapter };
  });
}

/** @throws CheckpointError where the base is not the one that the adapters were trained on. */
export function requireBase(folder: string, wanted: string | undefined, found: string): void {
  if (wanted === undefined || wanted === found) return;
  throw new CheckpointError(folder, `the weights of its base have the SHA-256 ${wanted}`, found);
}

/** Adds the adapters to the weights in place. */
export async function mergeAdapters(
  spec: ModelSpec,
  lora: LoraSpec,
  weights: Readonly<Record<string, Float32Array>>,
  adapters: Readonly<Record<string, Float32Array>>,
): Promise<void> {
  const session = await GraphSession.create(mergeGraph(lora), { intraOpThreads: 1 });
  const tensors = listAdapterParameters(spec, lora);
  try {
    for (let at = 0; at < tensors.length; at += 2) {
      const [a, b] = [tensors[at]!, tensors[at + 1]!];
      const target = weights[adaptedParameter(a.name)!]!;
      const feed = (data: Float32Array, shape: readonly number[]) => ({
        dtype: "float32" as const,
        data,
        shape,
      });
      const { merged } = await session.run({
        w: feed(target, [b.shape[0]!, a.shape[1]!]),
        a: feed(adapters[a.name]!, a.shape),
        b: feed(adapters[b.name]!, b.shape),
      });
      target.set(merged!.data as Float32Array);
    }
  } finally {
    await session.release();
  }
}

function mergeGraph({ rank, alpha }: LoraSpec): Graph {
  const graph = new Graph("merge");
  const w = graph.input("w", "float32", ["out", "in"]);
  const a = graph.input("a", "float32", [rank, "in"]);
  const b = graph.input("b", "float32", ["out", rank]);
  graph.output("merged", Add(w, FusedMatMul(b, a, { alpha: alpha / rank })));
  return graph;
}
