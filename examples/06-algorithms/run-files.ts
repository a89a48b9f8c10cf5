/** The run file of each algorithm on each world. */

import { readFile } from "node:fs/promises";
import path from "node:path";
import { parseYaml } from "@hone/config";

/** Each is a run file in this folder. */
export const WORLDS: readonly string[] = ["lake", "slippery-lake"];

type Tree = { readonly [key: string]: unknown };
type Rollout = { readonly tasksPerStep: number; readonly groupSize: number };

/** The names in algorithms.yaml, in its order. */
export async function algorithmNames(): Promise<string[]> {
  return Object.keys(await readTree("algorithms.yaml"));
}

/** The names in settings.yaml. */
export async function settingNames(): Promise<string[]> {
  return Object.keys(await readTree("settings.yaml"));
}

/**
 * A world's run file with what an algorithm changes in it, as parsed YAML. Each step has as many rollouts as the world's.
 * @param algorithm a name of algorithms.yaml, and names of settings.yaml after plus signs.
 */
export async function runFileOf(world: string, algorithm: string): Promise<Tree> {
  const [base, algorithms, settings] = await Promise.all(
    [`${world}.yaml`, "algorithms.yaml", "settings.yaml"].map(readTree),
  );
  const [name = "", ...added] = algorithm.split("+");
  const changes = [algorithms![name], ...added.map((setting) => settings![setting])];
  const merged = changes.reduce<Tree>((tree, change) => merge(tree, change as Tree), base!);
  const rollout = merged.rollout as Rollout;
  const { kind } = (merged.algorithm as { advantage: { kind: string } }).advantage;
  // ReMax plays each task once more, greedily.
  const rolloutsOfTask = rollout.groupSize + (kind === "remax" ? 1 : 0);
  const { tasksPerStep, groupSize } = base!.rollout as Rollout;
  return {
    ...merged,
    name: `${world}-${algorithm.replaceAll("+", "-")}`,
    rollout: { ...rollout, tasksPerStep: (tasksPerStep * groupSize) / rolloutsOfTask },
  };
}

/** The values of `changes` in the place of those of `base`; what has a kind is replaced with all of its options. */
function merge(base: Tree, changes: Tree): Tree {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(changes)) {
    const before = base[key];
    const isPart = isTree(value) && isTree(before) && !("kind" in value);
    merged[key] = isPart ? merge(before, value) : value;
  }
  return merged;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

async function readTree(name: string): Promise<Tree> {
  return parseYaml(await readFile(path.join(import.meta.dirname, name), "utf8"), name) as Tree;
}
