/**
 * Loads models from both kinds of folders: a checkpoint as it is, and a PEFT folder merged into its base model:
 *
 *   W + (alpha / r) B A
 *
 * One graph computes the product in a fixed order, so that the same adapter and base model always give the same bits.
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

/** Finds the folder of an adapter's base model, which the adapter names by a path or a model id of the hub. */
export type FindBase = (base: BaseReference) => Promise<string>;

export interface LoadMergedOptions {
  /** Makes the array of a parameter, for instance in memory that threads share. */
  readonly allocate?: WeightAllocator;
  /** Absent = only base models that are named by a folder are found. */
  readonly findBase?: FindBase;
}

/**
 * Reads a model. If the folder holds adapters, they are merged into their base model.
 * @returns the model; its digest is that of the weights in the folder itself, so of the adapters if there are any.
 * @throws CheckpointError as `loadModel` does, and if the base model is missing or not the one that was adapted.
 */
export async function loadMerged(
  folder: string,
  { allocate, findBase }: LoadMergedOptions = {},
): Promise<LoadedModel> {
  const base = await findBaseFolder(folder, findBase);
  if (base === undefined) return loadModel(folder, { allocate });
  const { baseDigest } = await inspectAdapter(folder);
  const model = await loadModel(base, { allocate });
  requireBase(folder, baseDigest, model.digest);
  const { lora, weights, digest } = await loadAdapter(folder, model.spec);
  await mergeAdapters(model.spec, lora, model.weights, weights);
  return { ...model, companions: { ...model.companions, ...(await loadCompanions(folder)) }, digest };
}

/** Reads everything of a model but its weights, as `inspectModel` does, from a folder of either kind. */
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
 * The folder of the base model of a folder's adapters; undefined if the folder holds no adapters.
 * @param findBase undefined = only base models that are named by a folder are found.
 * @throws CheckpointError if the base model cannot be found, or the folder does not name it.
 */
export async function findBaseFolder(folder: string, findBase?: FindBase): Promise<string | undefined> {
  if (!(await isAdapterFolder(folder))) return undefined;
  const { base } = await inspectAdapter(folder);
  // A file from outside may name any folder. Callers that restrict folders pass a `findBase` that checks them.
  const place = base.place.startsWith(".") ? path.resolve(folder, base.place) : base.place;
  if (findBase !== undefined) return findBase({ ...base, place });
  if (path.isAbsolute(place)) return place;
  const problem = `the base model of these adapters, ${JSON.stringify(base.place)}, is not a folder of this machine`;
  throw new CheckpointError(folder, `${problem}; download it and give its path in adapter_config.json`);
}

/** The digest that {@link loadMerged} returns, without loading the weights. */
export async function digestOfMerged(folder: string): Promise<string> {
  if (!(await isAdapterFolder(folder))) return digestOfWeights(folder);
  await using reader = await SafeTensorsReader.open(path.join(folder, ADAPTER_FILE));
  return await reader.readInto(() => undefined);
}

/** Where the values of a parameter are, and those of the adapter that is added to it. */
export interface MergedPlace extends TensorPlace {
  /** factor B A */
  readonly merged?: { readonly a: TensorPlace; readonly b: TensorPlace; readonly factor: number };
}

/**
 * Where the values that {@link loadMerged} returns are, for callers that read them themselves.
 * @throws CheckpointError as `loadMerged` does.
 */
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

/** @throws CheckpointError if the base model is not the one that the adapters were trained on. */
export function requireBase(folder: string, wanted: string | undefined, found: string): void {
  if (wanted === undefined || wanted === found) return;
  const problem = `the adapters were trained on base weights with the SHA-256 ${wanted}`;
  throw new CheckpointError(folder, `${problem}, but the base model here has ${found}`);
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
