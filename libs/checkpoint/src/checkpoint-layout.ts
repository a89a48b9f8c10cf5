/**
 * How a checkpoint's tensors are distributed over files: all in model.safetensors, or in the shards that
 * model.safetensors.index.json lists.
 */
import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import path from "node:path";
import { CheckpointError, quoteStart } from "./errors.ts";
import { readCompanion } from "./read-companion.ts";
import { ElementType } from "./safetensors/element-types.ts";
import { SafeTensorsReader } from "./safetensors/reader.ts";

export const MODEL_FILE = "model.safetensors";
export const INDEX_FILE = "model.safetensors.index.json";

/** A file and its tensors in order, with their names in the checkpoint. */
export interface Shard {
  readonly file: string;
  readonly tensors: ReadonlyArray<{ readonly name: string; readonly type: ElementType }>;
}

export interface CheckpointLayout {
  /** One file named {@link MODEL_FILE}, or the files that the index lists. */
  readonly shards: readonly Shard[];
}

/** The layout with all tensors in one float32 file. */
export function singleFileLayout(names: readonly string[]): CheckpointLayout {
  return { shards: [{ file: MODEL_FILE, tensors: names.map((name) => ({ name, type: ElementType.F32 })) }] };
}

/** The same layout with all numbers stored as one type. */
export function layoutOfType(layout: CheckpointLayout, type: ElementType): CheckpointLayout {
  const shards = layout.shards.map(({ file, tensors }) => ({
    file,
    tensors: tensors.map(({ name }) => ({ name, type })),
  }));
  return { shards };
}

/** The hexadecimal SHA-256 of the only file; of several files, the SHA-256 of their digests in the order of the file names. */
export function combineDigests(digests: ReadonlyMap<string, string>): string {
  const ordered = [...digests].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, digest]) => digest);
  return ordered.length === 1 ? ordered[0]! : createHash("sha256").update(ordered.join()).digest("hex");
}

/** The type that most tensors are stored as. */
export function mainType({ shards }: CheckpointLayout): ElementType {
  const counts = new Map<ElementType, number>();
  for (const { type } of shards.flatMap(({ tensors }) => tensors)) {
    counts.set(type, (counts.get(type) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? ElementType.F32;
}

/** The opened weight files of a folder. */
export interface OpenShards extends AsyncDisposable {
  readonly readers: readonly SafeTensorsReader[];
  /** Path of the file that should hold a tensor; the path of the index if the index does not list the tensor. */
  fileOf(name: string): string;
}

/** @throws CheckpointError if there are no weights, or a file is missing, truncated or not a safetensors file. */
export async function openShards(folder: string): Promise<OpenShards> {
  const places = await weightPlaces(folder);
  const files = places === undefined ? [MODEL_FILE] : [...new Set(Object.values(places))].sort();
  const readers: SafeTensorsReader[] = [];
  const close = async () => {
    for (const reader of readers) await reader[Symbol.asyncDispose]();
  };
  try {
    for (const file of files) readers.push(await SafeTensorsReader.open(path.join(folder, file)));
  } catch (error) {
    await close();
    throw error;
  }
  const fileOf = (name: string) =>
    path.join(folder, places === undefined ? MODEL_FILE : (places[name] ?? INDEX_FILE));
  return { readers, fileOf, [Symbol.asyncDispose]: close };
}

/** The layout of a model's tensors in the opened files, so that an export can repeat it. */
export function layoutOf(
  readers: readonly SafeTensorsReader[],
  isOfModel: (name: string) => boolean,
): CheckpointLayout {
  const shards = readers.map(({ path: file, header }) => ({
    file: path.basename(file),
    tensors: header.entries.filter(({ name }) => isOfModel(name)).map(({ name, type }) => ({ name, type })),
  }));
  return { shards };
}

/** Text of the index file of a layout; undefined for a single file, which needs none. */
export function indexOf({ shards }: CheckpointLayout, totalBytes: number): string | undefined {
  if (shards.length === 1 && shards[0]!.file === MODEL_FILE) return undefined;
  const places = shards.flatMap(({ file, tensors }) => tensors.map(({ name }) => [name, file] as const));
  const index = { metadata: { total_size: totalBytes }, weight_map: Object.fromEntries(places.sort()) };
  return `${JSON.stringify(index, null, 2)}\n`;
}

/** The file of each tensor according to the index; undefined if one file holds all tensors. */
async function weightPlaces(folder: string): Promise<Readonly<Record<string, string>> | undefined> {
  const names = await namesIn(folder);
  if (names.includes(MODEL_FILE)) return undefined;
  if (!names.includes(INDEX_FILE)) {
    const others = names.filter((name) => /\.(safetensors|bin|pt|pth|gguf)$/.test(name));
    const found = others.length === 0 ? "no weights" : `only ${others.join(", ")}`;
    throw new CheckpointError(
      folder,
      `the folder must contain ${MODEL_FILE} or ${INDEX_FILE}, but has ${found}`,
    );
  }
  const index = path.join(folder, INDEX_FILE);
  return readWeightMap((await readCompanion(index)).toString("utf8"), index);
}

function readWeightMap(text: string, file: string): Record<string, string> {
  let map: unknown;
  try {
    map = (JSON.parse(text) as { weight_map?: unknown } | null)?.weight_map;
  } catch (cause) {
    throw new CheckpointError(file, `the file must be JSON, but begins with ${quoteStart(text)}`, { cause });
  }
  const places = Object.entries(typeof map === "object" && map !== null ? map : {});
  const isPlace = ([, place]: [string, unknown]) =>
    typeof place === "string" && path.basename(place) === place && place.endsWith(".safetensors");
  if (places.length === 0 || !places.every(isPlace)) {
    const found = JSON.stringify(places.find((each) => !isPlace(each)) ?? map ?? null);
    const rule = "weight_map must name for each tensor a .safetensors file of the same folder";
    throw new CheckpointError(file, `${rule}, but contains ${found}`);
  }
  return Object.fromEntries(places) as Record<string, string>;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CheckpointError(folder, `the folder cannot be opened (${reason})`, { cause });
  }
}
