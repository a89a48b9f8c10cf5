/** Checks for what contradicts itself in the parts of a mix, and in curricula. */

import type { CurriculumConfig } from "@hone/rl";
import type { RunConfig } from "../schema.ts";
import type { MixPart } from "../sources.ts";
import type { Contradiction } from "./contradiction.ts";

type Checked = Pick<RunConfig, "dataset" | "rollout">;

/** @returns what contradicts itself in the mixes of both splits. */
export function* mixContradictions({ dataset, rollout }: Checked): Generator<Contradiction> {
  for (const split of ["train", "eval"] as const) {
    const source = dataset[split];
    if (source?.source !== "mix") continue;
    const { parts } = source;
    const path = ["dataset", split, "parts"];
    yield* nameContradictions(parts, path);
    if (split === "train") yield* groupContradictions(parts, path, rollout.tasksPerStep);
    else yield* evaluationParts(parts, path);
    for (const [index, part] of parts.entries()) {
      if (part.maxTurns !== undefined && part.maxTurns > rollout.maxTurns) {
        yield {
          path: [...path, index, "maxTurns"],
          allowed: `at most rollout.maxTurns (${rollout.maxTurns})`,
        };
      }
      yield* curriculumContradictions(part.curriculum, [...path, index, "curriculum"]);
      if (part.tasks.source === "environment" && part.tasks.seeds.from >= part.tasks.seeds.to) {
        const allowed = `greater than from (${part.tasks.seeds.from})`;
        yield { path: [...path, index, "tasks", "seeds", "to"], allowed };
      }
    }
  }
}

/** Figures, tasks and judges are told apart by the names of parts. */
function* nameContradictions(parts: readonly MixPart[], path: PropertyKey[]): Generator<Contradiction> {
  const seen = new Set<string>();
  for (const [index, { name, agent, judge, maxTurns, maxConcurrency, curriculum }] of parts.entries()) {
    if (name === undefined) {
      if ([agent, judge, maxTurns, maxConcurrency, curriculum].every((own) => own === undefined)) continue;
      yield { path: [...path, index, "name"], allowed: "given where a part has keys of its own" };
    } else if (seen.has(name)) {
      yield { path: [...path, index, "name"], allowed: `a name that no other part has ("${name}" is taken)` };
    } else {
      seen.add(name);
    }
  }
}

function* groupContradictions(
  parts: readonly MixPart[],
  path: PropertyKey[],
  tasksPerStep: number,
): Generator<Contradiction> {
  const given = parts.filter(({ groups }) => groups !== undefined);
  if (given.length === 0) return;
  for (const [index, { groups, weight }] of parts.entries()) {
    if (groups === undefined) {
      yield { path: [...path, index, "groups"], allowed: "given for every part, or for none" };
      return;
    }
    if (weight !== undefined) {
      yield { path: [...path, index, "weight"], allowed: "left out where groups are given" };
    }
  }
  const sum = given.reduce((total, { groups = 0 }) => total + groups, 0);
  if (sum !== tasksPerStep) {
    const allowed = `such that the groups of all parts (${sum}) add up to rollout.tasksPerStep (${tasksPerStep})`;
    yield { path: [...path, 0, "groups"], allowed };
  }
}

/** An evaluation takes every task of every part once. */
function* evaluationParts(parts: readonly MixPart[], path: PropertyKey[]): Generator<Contradiction> {
  for (const [index, part] of parts.entries()) {
    for (const key of ["groups", "curriculum"] as const) {
      if (part[key] === undefined) continue;
      yield { path: [...path, index, key], allowed: "left out in dataset.eval, which takes each task once" };
    }
  }
}

/** @param path of the curriculum in the run file. */
export function* curriculumContradictions(
  curriculum: CurriculumConfig | undefined,
  path: PropertyKey[],
): Generator<Contradiction> {
  if (curriculum?.kind === "success" && curriculum.low > curriculum.high) {
    yield { path: [...path, "low"], allowed: `at most high (${curriculum.high})` };
  }
}
