/**
 * Uploads the last checkpoint of a run, a Hugging Face folder, to the artefacts of its MLflow run.
 *
 * The folder is named by an event. Whoever could write events must not get other files of the tracer's machine read: only
 * `runs/<run>/checkpoints/step-<k>` of that run below the state folder is uploaded, and links in it are left out.
 */

import { openAsBlob } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "@hone/telemetry";
import type { RunFact } from "../../domain/run-event.ts";
import type { MlflowClient, MlflowRun } from "./mlflow-client.ts";

/** Uploads what an ended run left. @throws what the client throws. */
export type CheckpointUpload = (
  client: MlflowClient,
  run: MlflowRun,
  ended: Extract<RunFact, { kind: "ended" }>,
) => Promise<void>;

const CHECKPOINT = /^runs\/([\w-]+)\/checkpoints\/(step-\d+)$/;

export function checkpointUpload(stateDir: string, logger: Logger): CheckpointUpload {
  return async (client, run, { runId, checkpoint }) => {
    if (checkpoint === "") return;
    const [, owner, name] = CHECKPOINT.exec(checkpoint) ?? [];
    const skip = (reason: string) =>
      logger.warn("the checkpoint of a run is not uploaded to MLflow", { runId, checkpoint, reason });
    if (owner !== runId || name === undefined) return skip("it is not a checkpoint of this run");
    const folder = path.join(stateDir, checkpoint);
    let files: readonly string[];
    try {
      if ((await realpath(folder)) !== path.join(await realpath(stateDir), checkpoint))
        return skip("its folder is a link");
      files = await filesOf(folder);
    } catch (error) {
      if (!isMissing(error)) throw error;
      return skip("this machine does not have its folder; the tracer needs the state folder of the trainer");
    }
    for (const file of files) {
      const place = path.relative(folder, file).split(path.sep).join("/");
      await client.putArtifact(run, `checkpoints/${name}/${place}`, await openAsBlob(file));
    }
  };
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.join(parentPath, name))
    .toSorted();
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "EACCES");
}
