/**
 * The parts of a run's tasks: one for a source by itself, one for each part of a mix. A part may have an agent, judges and limits
 * of its own; one of the evaluation has those of the training's part of the same name, and any other has those of the run.
 */

import type { CurriculumConfig } from "@hone/rl";
import { pathText } from "../../problems.ts";
import type { AgentChoice } from "./agent.ts";
import { serviceEnvironmentOf } from "./environment-service-source.ts";
import type { JudgeConfig } from "./judges.ts";
import type { RunConfig } from "./schema.ts";
import type { MixPart, PartSource, TaskSource } from "./sources.ts";

type Sources = Pick<RunConfig, "dataset">;

/** One part of a split. */
export interface TaskPart {
  readonly split: "train" | "eval";
  /** Path of its source within the run file, such as `["dataset", "train", "parts", 0, "tasks"]`. */
  readonly path: readonly PropertyKey[];
  /** Empty for a source that is no part of a mix, and for a part without a name. */
  readonly name: string;
  readonly tasks: PartSource;
  /** Undefined for a source that is no part of a mix. */
  readonly part: MixPart | undefined;
}

/** The parts of both splits, in the order of the file. */
export function taskPartsOf({ dataset }: Sources): TaskPart[] {
  return (["train", "eval"] as const).flatMap((split): TaskPart[] => {
    const source = dataset[split];
    if (source === undefined) return [];
    const path = ["dataset", split];
    if (source.source !== "mix") return [{ split, path, name: "", tasks: source, part: undefined }];
    return source.parts.map(
      (part, index): TaskPart => ({
        split,
        path: [...path, "parts", index, "tasks"],
        name: part.name ?? "",
        tasks: part.tasks,
        part,
      }),
    );
  });
}

/** The environment that tasks are played in, with its configuration; undefined for rows. */
export function environmentOfTasks(
  tasks: PartSource,
): { readonly environment: string; readonly config: Readonly<Record<string, unknown>> } | undefined {
  if (tasks.source === "environment_service") return serviceEnvironmentOf(tasks);
  return tasks.source === "environment" ? tasks : undefined;
}

/** The agent that plays a part's tasks. @param name see {@link TaskPart}. */
export function agentOfPart(run: Sources & Pick<RunConfig, "agent">, name: string): AgentChoice {
  return ownOf(run, name, "agent") ?? run.agent;
}

/** The judges of a part's rollouts. @param name see {@link TaskPart}. */
export function judgesOfPart(run: Sources & Pick<RunConfig, "judge">, name: string): readonly JudgeConfig[] {
  return ownOf(run, name, "judge") ?? run.judge;
}

/** Most turns of a rollout of a part. @param name see {@link TaskPart}. */
export function maxTurnsOfPart(run: Sources & Pick<RunConfig, "rollout">, name: string): number {
  return ownOf(run, name, "maxTurns") ?? run.rollout.maxTurns;
}

/** Most rollouts of a part in the queue or played at once; undefined = no limit of its own. @param name see {@link TaskPart}. */
export function maxConcurrencyOfPart(run: Sources, name: string): number | undefined {
  return ownOf(run, name, "maxConcurrency");
}

/** Which tasks of a part are trained. */
export interface PartCurriculum {
  /** See {@link TaskPart}. */
  readonly part: string;
  /** Key of the run file, such as `dataset.curriculum`. */
  readonly key: string;
  readonly curriculum: CurriculumConfig;
}

/** The curricula of the training's parts, their own or else the run's; a part that is not there takes all of its tasks. */
export function curriculaOf(run: Sources): PartCurriculum[] {
  const parts = taskPartsOf(run).filter(({ split }) => split === "train");
  return parts.flatMap(({ name, path, part }): PartCurriculum[] => {
    const own = part?.curriculum;
    if (own !== undefined) {
      return [{ part: name, key: pathText([...path.slice(0, -1), "curriculum"]), curriculum: own }];
    }
    const { curriculum } = run.dataset;
    return curriculum === undefined ? [] : [{ part: name, key: "dataset.curriculum", curriculum }];
  });
}

/** The modules of a run's agents, environments and tools: those of its own agent and of its parts' agents, each once. */
export function modulesOf(run: Sources & Pick<RunConfig, "agent">): string[] {
  const agents = [run.agent, ...taskPartsOf(run).map(({ name }) => agentOfPart(run, name))];
  return [...new Set(agents.flatMap(({ modules = [] }) => modules))];
}

/** What a part says itself, in the training split or else in the evaluation. */
function ownOf<Key extends "agent" | "judge" | "maxTurns" | "maxConcurrency">(
  { dataset }: Sources,
  name: string,
  key: Key,
): MixPart[Key] {
  if (name === "") return undefined;
  for (const split of ["train", "eval"] as const) {
    const found = partsIn(dataset[split]).find((part) => part.name === name && part[key] !== undefined);
    if (found !== undefined) return found[key];
  }
  return undefined;
}

function partsIn(source: TaskSource | undefined): readonly MixPart[] {
  return source?.source === "mix" ? source.parts : [];
}
