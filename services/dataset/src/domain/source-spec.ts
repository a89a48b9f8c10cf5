/** The description of one split's tasks in a run file, and what can be wrong with it. */

import type { EnvironmentServiceSource, TaskSource as SourceSpec } from "@hone/config";

export type { SourceSpec };

/** One thing that is wrong with a run's dataset section. */
export interface SourceProblem {
  /** Key in the run file, such as `dataset.train.seeds.to`. */
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly message: string;
}

/** Tasks of environments, with their key in the run file. */
interface Played {
  readonly key: string;
  /** Of the part of a mix; parts of different names play differently. */
  readonly name: string | undefined;
  readonly tasks: PlayedTasks;
}

type PlayedTasks = Extract<SourceSpec, { source: "environment" | "environment_service" }>;

/**
 * Checks that a run is not evaluated on tasks that it trains on, which only both sources together show.
 * @returns a problem with the evaluation's tasks, or undefined.
 */
export function overlapOf(train: SourceSpec, evaluation: SourceSpec): SourceProblem | undefined {
  for (const trained of playedIn(train, "dataset.train")) {
    for (const heldOut of playedIn(evaluation, "dataset.eval")) {
      const isOther =
        trained.name !== undefined && heldOut.name !== undefined && trained.name !== heldOut.name;
      const problem = isOther ? undefined : overlapOfTasks(trained.tasks, heldOut);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function playedIn(source: SourceSpec, key: string): Played[] {
  if (isPlayed(source)) return [{ key, name: undefined, tasks: source }];
  if (source.source !== "mix") return [];
  return source.parts.flatMap(({ name, tasks }, index) =>
    isPlayed(tasks) ? [{ key: `${key}.parts[${index}].tasks`, name, tasks }] : [],
  );
}

function isPlayed(source: SourceSpec): source is PlayedTasks {
  return source.source === "environment" || source.source === "environment_service";
}

function overlapOfTasks(trained: PlayedTasks, { key, tasks: heldOut }: Played): SourceProblem | undefined {
  if (trained.source === "environment" && heldOut.source === "environment") {
    return overlapOfSeeds(trained, heldOut, key);
  }
  if (trained.source !== "environment_service" || heldOut.source !== "environment_service") return undefined;
  return overlapOfLists(trained, heldOut, key);
}

function overlapOfSeeds(
  trained: Extract<PlayedTasks, { source: "environment" }>,
  heldOut: Extract<PlayedTasks, { source: "environment" }>,
  key: string,
): SourceProblem | undefined {
  if (trained.environment !== heldOut.environment) return undefined;
  const begin = Math.max(trained.seeds.from, heldOut.seeds.from);
  const end = Math.min(trained.seeds.to, heldOut.seeds.to);
  if (begin >= end) return undefined;
  const allowed = `seeds outside ${trained.seeds.from} to ${trained.seeds.to}, which are trained on`;
  return {
    key: `${key}.seeds`,
    value: heldOut.seeds,
    allowed,
    message: `${key} shares seeds ${begin} to ${end} with dataset.train, but held-out tasks must not be trained on; give it ${allowed}`,
  };
}

function overlapOfLists(
  train: EnvironmentServiceSource,
  evaluation: EnvironmentServiceSource,
  key: string,
): SourceProblem | undefined {
  const isSame = (["url", "envType", "split"] as const).every((each) => train[each] === evaluation[each]);
  if (!isSame) return undefined;
  const allowed = `a split other than "${train.split}", which is trained on`;
  return {
    key: `${key}.split`,
    value: evaluation.split,
    allowed,
    message: `${key} has the tasks of dataset.train, but held-out tasks must not be trained on; give it ${allowed}`,
  };
}
