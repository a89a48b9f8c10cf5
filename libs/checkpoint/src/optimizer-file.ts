/**
 * The file of the optimizer's state, which is stored beside the weights and covers the trained parameters:
 *
 *   optimizer.safetensors   moments `m.*` and `v.*` as float32; the number of updates in its metadata
 */
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { ParameterInfo } from "@hone/nn";
import { CheckpointError } from "./errors.ts";
import { type AdamWState, initialiseAdamW } from "./optimizer-state.ts";
import { ElementType } from "./safetensors/element-types.ts";
import { SafeTensorsReader } from "./safetensors/reader.ts";
import { type TensorToWrite, writeSafeTensors } from "./safetensors/writer.ts";

const OPTIMIZER_FILE = "optimizer.safetensors";

/** Reads the optimizer's state of these parameters; undefined if the folder has none. */
export async function loadOptimizer(
  folder: string,
  parameters: readonly ParameterInfo[],
): Promise<AdamWState | undefined> {
  const names = await readdir(folder);
  if (!names.includes(OPTIMIZER_FILE)) return undefined;
  await using reader = await SafeTensorsReader.open(path.join(folder, OPTIMIZER_FILE));
  const step = Number(reader.header.metadata.step);
  if (!Number.isInteger(step) || step < 0) {
    const found = String(reader.header.metadata.step);
    throw new CheckpointError(
      reader.path,
      `"step" in the metadata must be the number of updates, but is ${found}`,
    );
  }
  const state = { ...initialiseAdamW(parameters), step };
  const wanted = new Map(momentsOf(parameters, state).map((moment) => [moment.name, moment]));
  for (const { name, shape } of wanted.values()) {
    const entry = reader.header.entries.find((each) => each.name === name);
    if (entry?.shape.join() === shape.join()) continue;
    const found = entry === undefined ? "is missing" : `has the shape [${entry.shape.join(", ")}]`;
    throw new CheckpointError(
      reader.path,
      `tensor ${name} must have the shape [${shape.join(", ")}], but ${found}`,
    );
  }
  await reader.readInto(({ name }) => wanted.get(name)?.data);
  return state;
}

/** Writes the optimizer's state. @returns the size of the file in bytes. */
export async function saveOptimizer(
  folder: string,
  parameters: readonly ParameterInfo[],
  state: AdamWState,
): Promise<number> {
  const file = path.join(folder, OPTIMIZER_FILE);
  const { bytes } = await writeSafeTensors(file, momentsOf(parameters, state), { step: String(state.step) });
  return bytes;
}

function momentsOf(parameters: readonly ParameterInfo[], { m, v }: AdamWState): TensorToWrite[] {
  const tensors = (prefix: string, values: AdamWState["m"]) =>
    parameters.map(({ name, shape }) => ({
      name: prefix + name,
      type: ElementType.F32,
      shape,
      data: values[name]!,
    }));
  return [...tensors("m.", m), ...tensors("v.", v)];
}
