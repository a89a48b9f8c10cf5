/** Refuses a replay of what was not kept, and one that goes on from a kept state with what that state does not fit. */

import { isDeepStrictEqual } from "node:util";
import { hasReference, type RunConfig, startVersion } from "@hone/config";
import { readRunFile } from "../groups/keep-groups.ts";
import { type Problem, problemOf } from "../report/run-event.ts";
import type { RunFolders } from "../state/run-folders.ts";

/** @throws {FolderRefusedError} when the state folder cannot be read now. @throws {BrokenKeptStepError} */
export async function replayProblems(config: RunConfig, folders: RunFolders): Promise<Problem[]> {
  const { replay } = config;
  if (replay === undefined) return [];
  const recorded = folders.ofRun(replay.run);
  const missing = await missingRollouts(config, replay.run, recorded);
  if (missing !== undefined) return [missing];
  if (replay.from === undefined) return [];
  const run = await readRunFile(recorded, replay.from);
  const kept = await recorded.keptStates();
  return [...stateProblems(config, replay.run, kept), ...unlikeProblems(config, replay.run, run)];
}

async function missingRollouts(
  config: RunConfig,
  run: string,
  recorded: RunFolders,
): Promise<Problem | undefined> {
  const { steps } = config.trainer;
  const kept = await recorded.keptSteps();
  const first = startVersion(config) + 1;
  const wanted = Array.from({ length: steps - first + 1 }, (_, i) => first + i);
  const missing = wanted.find((step) => !kept.has(step));
  if (missing === undefined) return undefined;
  const key = "replay.run";
  const allowed = "a run with trainer.keepRollouts: true that has at least trainer.steps steps";
  const message =
    kept.size === 0
      ? `${key} is ${run}, whose rollouts are not kept in the state folder: it must be ${allowed}`
      : `${key} is ${run}, of which the rollouts of step ${missing} are not kept, and trainer.steps is ${steps}: it must be ${allowed}`;
  return { key, valueJson: JSON.stringify(run), allowed, message };
}

/** @param kept the versions whose states are kept, ascending. */
function stateProblems(config: RunConfig, run: string, kept: readonly number[]): Problem[] {
  const { from } = config.replay ?? {};
  const version = startVersion(config);
  if (!kept.includes(version)) {
    const near = kept.findLast((each) => each < version) ?? kept[0];
    const allowed =
      near === undefined
        ? `left out, as ${run} kept no whole states (trainer.keepStates)`
        : `a step after a version whose state ${run} kept (trainer.keepStates), such as ${near + 1}`;
    return [problemOf("replay.from", from, allowed)];
  }
  if (!hasReference(config) || kept.includes(0)) return [];
  const allowed = `left out, as ${run} does not keep the state of version 0, which is the reference policy`;
  return [problemOf("replay.from", from, allowed)];
}

/** The model, its optimizer and the critic go on as they are kept. */
function unlikeProblems(config: RunConfig, run: string, recorded: RunConfig): Problem[] {
  const problems: Problem[] = [];
  const [own, theirs] = [withoutTokenizer(config.model), withoutTokenizer(recorded.model)];
  if (!isDeepStrictEqual(own, theirs)) {
    problems.push(
      problemOf("model", own, `that of ${run}, whose weights are kept: ${JSON.stringify(theirs)}`),
    );
  }
  const [{ kind }, { kind: kept }] = [config.trainer.engine, recorded.trainer.engine];
  if (kind !== kept) {
    const allowed = `${JSON.stringify(kept)}, as that engine wrote the optimizer of ${run}`;
    problems.push(problemOf("trainer.engine.kind", kind, allowed));
  }
  const { critic } = config.trainer;
  if (critic === undefined) return problems;
  if (recorded.trainer.critic === undefined) {
    const allowed = `left out where replay.from is given, as ${run} has no critic to go on with`;
    return [...problems, problemOf("trainer.critic", critic, allowed)];
  }
  const [model, keptModel] = [critic.model, recorded.trainer.critic.model];
  if (isDeepStrictEqual(model, keptModel)) return problems;
  const wanted = keptModel === undefined ? "left out" : JSON.stringify(keptModel);
  return [
    ...problems,
    problemOf("trainer.critic.model", model, `${wanted}, as in ${run}, whose critic is kept`),
  ];
}

function withoutTokenizer(model: RunConfig["model"]): unknown {
  if (!("init" in model)) return model;
  const { tokenizer: _, ...init } = model.init;
  return { init };
}
