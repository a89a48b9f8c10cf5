/** Checkpoints for people: Hugging Face folders of chosen versions. The state of a run does not depend on them. */

import path from "node:path";
import { isTraining, type RunConfig, startVersion } from "@hone/config";
import { diskWait } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { policyFolder } from "./state-files.ts";

/**
 * Whether a version is exported: every n-th is, and the last. The one that the run begins with is exported only where no step
 * follows it, and nothing is exported where the run does not train.
 */
export function isCheckpointDue(config: RunConfig, version: number): boolean {
  if (!isTraining(config)) return false;
  const { steps, checkpoint } = config.trainer;
  if (version === steps) return true;
  return version > startVersion(config) && checkpoint.every > 0 && version % checkpoint.every === 0;
}

/** Exports the current version unless its folder exists, and removes the oldest checkpoints beyond the run's `keep`. */
export async function exportCheckpoint(
  {
    run,
    engine,
    learners,
    folders,
    reporter,
    logger,
  }: Pick<RunContext, "run" | "engine" | "learners" | "folders" | "reporter" | "logger">,
  version: number,
): Promise<void> {
  const folder = folders.checkpoint(version);
  if (await folders.exists(folder)) return;
  await reporter.untilAvailable(diskWait(folder), () =>
    folders.writeCheckpoint(version, run.epoch, async (unfinished) => {
      await engine.exportTo(unfinished);
      for (const learner of learners) {
        await learner.engine.exportTo(path.join(unfinished, policyFolder(learner.name)));
      }
    }),
  );
  await reporter.untilAvailable(diskWait(folder), () =>
    folders.removeOldCheckpoints(run.config.trainer.checkpoint.keep, run.epoch),
  );
  logger.info("checkpoint written", { folder });
}

/** Folder of the newest checkpoint, relative to the state folder; empty when there is none. */
export async function lastCheckpoint({ folders }: Pick<RunContext, "folders">): Promise<string> {
  const step = (await folders.checkpoints()).at(-1);
  return step === undefined ? "" : folders.checkpoint(step);
}
