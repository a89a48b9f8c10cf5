/** Tasks that are an environment with a seed. */

import { SourceError } from "../errors.ts";
import type { SourceSpec } from "./source-spec.ts";
import type { Task, TaskSource } from "./task.ts";

/** The part of a run file that names an environment and its seeds, `from` included and `to` excluded. */
export type EnvironmentTasks = Extract<SourceSpec, { source: "environment" }>;

/** @throws {SourceError} when the range of seeds is empty. */
export function environmentSource(tasks: EnvironmentTasks): TaskSource {
  const { environment, seeds } = tasks;
  const size = seeds.to - seeds.from;
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new SourceError(
      `the range of seeds ${seeds.from} to ${seeds.to} is empty; give a \`to\` above ${seeds.from} (it is excluded)`,
      { path: "seeds.to", allowed: `an integer above ${seeds.from}` },
    );
  }
  const configJson = JSON.stringify(tasks.config);
  return {
    size,
    read(elements) {
      return Promise.resolve(
        elements.map((element): Task => {
          const seed = seeds.from + element;
          return { kind: "environment", id: `${environment}:${seed}`, environment, seed, configJson };
        }),
      );
    },
  };
}
