/** The description of one split's tasks in a run file, and what can be wrong with it. */

import type { TaskSource as SourceSpec } from "@hone/config";

export type { SourceSpec };

/** One thing that is wrong with a run's dataset section. */
export interface SourceProblem {
  /** Key in the run file, such as `dataset.train.seeds.to`. */
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
  readonly message: string;
}

/** An environment's tasks, with their key in the run file. */
interface Played {
  readonly key: string;
  /** Of the part of a mix; parts of different names play differently. */
  readonly name: string | undefined;
  readonly tasks: Extract<SourceSpec, { source: "environment" }>;
}

/**
 * Checks that a run is not evaluated on tasks that it trains on, which only both sources together show.
 * @returns a problem with the evaluation's seeds, or undefined.
 */
export function overlapOf(train: SourceSpec, evaluation: SourceSpec): SourceProblem | undefined {
  for (const trained of playedIn(train, "dataset.train")) {
    for (const heldOut of playedIn(evaluation, "dataset.eval")) {
      const isOther =
        trained.name !== undefined && heldOut.name !== undefined && trained.name !== heldOut.name;
      const problem = isOther ? undefined : seedOverlap(trained, heldOut);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function playedIn(source: SourceSpec, key: string): Played[] {
  if (source.source === "environment") return [{ key, name: undefined, tasks: source }];
  if (source.source !== "mix") return [];
  return source.parts.flatMap(({ name, tasks }, index) =>
    tasks.source === "environment" ? [{ key: `${key}.parts[${index}].tasks`, name, tasks }] : [],
  );
}

function seedOverlap({ tasks: trained }: Played, { key, tasks: heldOut }: Played): SourceProblem | undefined {
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
