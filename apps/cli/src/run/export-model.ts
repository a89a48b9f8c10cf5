/** Writes a run's weights into a folder of a person's own, so that it is there whole or not at all. */

import { constants } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelFilesOf } from "@hone/hub";
import { UsageError } from "../errors.ts";

const ADAPTER_CONFIG = "adapter_config.json";

/** How adapters name the model that they belong to, in Hone's folders and for everybody else. */
export interface BaseName {
  readonly place: string;
  readonly revision?: string | undefined;
}

/**
 * Copies the files that make up a model or its adapters; what else lies beside them, as an optimizer, is left.
 * @param target must not exist, or be empty.
 * @param base what adapters are to name as their base; undefined = as they do.
 * @returns the names of the files.
 * @throws {UsageError} when the target holds something.
 */
export async function copyModel(source: string, target: string, base?: BaseName): Promise<string[]> {
  return intoNewFolder(target, async (unfinished) => {
    const names = modelFilesOf(await readdir(source));
    for (const name of names) {
      await copyFile(join(source, name), join(unfinished, name), constants.COPYFILE_FICLONE);
    }
    if (base !== undefined && names.includes(ADAPTER_CONFIG)) {
      await renameBase(join(unfinished, ADAPTER_CONFIG), base);
    }
  });
}

/**
 * Merges adapters into their base and writes the model, stored as the base is.
 * @param base folder of the model that they belong to.
 * @returns the names of the files.
 * @throws {UsageError} when the target holds something; CheckpointError when the two do not belong together.
 */
export async function mergeModel(source: string, base: string, target: string): Promise<string[]> {
  // Heavy: only who merges pays for it.
  const { loadMerged, saveCheckpoint } = await import("@hone/checkpoint");
  return intoNewFolder(target, async (unfinished) => {
    await saveCheckpoint(unfinished, await loadMerged(source, { findBase: async () => base }));
  });
}

async function intoNewFolder(target: string, write: (folder: string) => Promise<void>): Promise<string[]> {
  const present = await readdir(target).catch(() => []);
  if (present.length > 0) {
    throw new UsageError(
      `Cannot export to ${target} as the folder must be new or empty: current value is ${present.length} files`,
    );
  }
  const unfinished = join(dirname(target), `.new-${process.pid}-${Date.now()}`);
  try {
    await mkdir(unfinished, { recursive: true });
    await write(unfinished);
    const names = await readdir(unfinished);
    await rename(unfinished, target);
    return names.sort();
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

async function renameBase(file: string, { place, revision }: BaseName): Promise<void> {
  const config = JSON.parse(await readFile(file, "utf8")) as Record<string, unknown>;
  const named = { ...config, base_model_name_or_path: place, revision: revision ?? null };
  await writeFile(file, `${JSON.stringify(named, null, 2)}\n`);
}
