/**
 * The run file of a replay: that of the recorded run, which the trainer keeps beside the rollouts, with what the user changes.
 *
 *   runs/<run>/rollouts/<step>-<epoch>/run.json
 *   runs/<run>/kept-states/<version>/            a state that a replay may begin with
 */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { inlineFiles, parseYaml, resolveRunConfig } from "@hone/config";
import { UsageError } from "../errors.ts";
import type { LoadedRun } from "../run/load-run-file.ts";
import { namesIn, runFolder } from "../run/run-weights.ts";

/** A value that differs from the recorded run's. */
export interface Change {
  /** The key, level by level, such as `["algorithm", "loss", "kind"]`. */
  readonly path: readonly string[];
  readonly value: unknown;
}

type Tree = Readonly<Record<string, unknown>>;

/** Other parts of a run file decide what is played, which a replay does not do again. */
const CHANGEABLE = ["algorithm", "trainer"];
const SUFFIX = "-replay";
const MAX_NAME = 40;

/**
 * Reads changes such as `algorithm.loss.kind=gspo,trainer.epochs=2`; values are YAML.
 * @throws {UsageError} when the text is not that.
 */
export function readChanges(text: string): Change[] {
  return text.split(/,(?=[A-Za-z][\w.]*=)/).map((each) => {
    const at = each.indexOf("=");
    const path = each.slice(0, Math.max(at, 0)).split(".");
    if (at < 1 || path.length < 2 || path.includes("") || !CHANGEABLE.includes(path[0]!)) {
      throw new UsageError(
        `--set ${each} does not say what to change; give keys of ${CHANGEABLE.join(" or ")} with their values, such as algorithm.loss.kind=gspo,trainer.epochs=2`,
      );
    }
    return { path, value: parseYaml(each.slice(at + 1), `the value of ${path.join(".")}`) };
  });
}

/** @throws {UsageError} when the text is not the number of a step. */
export function readFrom(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`--from ${text} is not a step; steps count from 1`);
  return Number(text);
}

/**
 * The step from which a replay trains so that a wanted step is trained from the state that the recorded run had before it: the
 * wanted one, or an earlier one where no state of the version before it is kept.
 * @throws {UsageError} when no state is kept from which the wanted step could be reached.
 */
export async function firstStep(stateFolder: string, runId: string, wanted: number): Promise<number> {
  const folder = join(runFolder(stateFolder, runId), "kept-states");
  const kept = (await namesIn(folder)).filter((name) => /^\d+$/.test(name)).map(Number);
  const version = Math.max(...kept.filter((each) => each < wanted));
  if (version >= 0) return version + 1;
  throw new UsageError(
    `run ${runId} kept no state of a version before step ${wanted} in ${folder}; runs keep them with trainer.keepStates, the number of steps from one to the next, and without --from all steps are trained`,
  );
}

/**
 * @param from the first step that is trained, from a kept state; undefined = all steps are, from version 0.
 * @throws {UsageError} when the run did not keep its rollouts.
 * @throws {ConfigError} that lists what is wrong with the changes.
 */
export async function replayRun(
  stateFolder: string,
  runId: string,
  changes: readonly Change[],
  from?: number,
): Promise<LoadedRun> {
  const { model, warmStart, ...recorded } = await recordedRun(stateFolder, runId);
  const { tokenizer: _, ...pretrained } = model as Tree;
  const changed = changes.reduce<Tree>((run, { path, value }) => withValue(run, path, value), {
    ...recorded,
    model: "path" in pretrained ? pretrained : model,
  });
  const name = `${String(recorded.name).slice(0, MAX_NAME - SUFFIX.length)}${SUFFIX}`;
  const config = await inlineFiles(
    resolveRunConfig({
      ...changed,
      name,
      ...(from === undefined && { warmStart }),
      trainer: { ...(changed.trainer as Tree), keepRollouts: false, keepStates: 0 },
      replay: { run: runId, from },
    }),
    stateFolder,
  );
  return { name, config, configJson: JSON.stringify(config) };
}

async function recordedRun(stateFolder: string, runId: string): Promise<Tree> {
  const folder = join(runFolder(stateFolder, runId), "rollouts");
  const kept = (await namesIn(folder)).find((name) => /^\d+-\d+$/.test(name));
  if (kept === undefined) {
    throw new UsageError(
      `run ${runId} kept no rollouts in ${folder}; runs keep them with trainer.keepRollouts: true`,
    );
  }
  return JSON.parse(await readFile(join(folder, kept, "run.json"), "utf8")) as Tree;
}

/** A kind that changes takes the options of the former kind with it. */
function withValue(tree: Tree, [key, ...rest]: readonly string[], value: unknown): Tree {
  if (rest.length === 0) return { ...tree, [key!]: value };
  const below = (tree[key!] ?? {}) as Tree;
  if (rest.length === 1 && rest[0] === "kind" && below.kind !== value)
    return { ...tree, [key!]: { kind: value } };
  return { ...tree, [key!]: withValue(below, rest, value) };
}
