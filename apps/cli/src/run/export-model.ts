/** Writes a run's weights into a user's folder, either completely or not at all. */

import { constants } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelFilesOf } from "@hone/hub";
import { UsageError } from "../errors.ts";

const ADAPTER_CONFIG = "adapter_config.json";

/** How adapters name their base model. */
export interface BaseName {
  readonly place: string;
  readonly revision?: string | undefined;
}

/**
 * Copies the files that make up a model or its adapters; other files beside them, such as an optimizer's, are not copied.
 * @param target must not exist, or be empty.
 * @param base the base model that the copied adapters name; undefined = unchanged.
 * @returns the names of the files.
 * @throws {UsageError} when the target is not empty.
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
 * Merges adapters into their base model and writes the result in the files and types of the base.
 * @param base folder of the base model.
 * @returns the names of the files.
 * @throws {UsageError} when the target is not empty; {CheckpointError} when the adapters do not fit the base.
 */
export async function mergeModel(source: string, base: string, target: string): Promise<string[]> {
  // Loaded here, as it takes a while and only merging needs it.
  const { loadMerged, saveCheckpoint } = await import("@hone/checkpoint");
  return intoNewFolder(target, async (unfinished) => {
    await saveCheckpoint(unfinished, await loadMerged(source, { findBase: async () => base }));
  });
}

async function intoNewFolder(target: string, write: (folder: string) => Promise<void>): Promise<string[]> {
  const present = await readdir(target).catch(() => []);
  if (present.length > 0) {
    throw new UsageError(
      `${target} is not empty: it has ${present.length} files; export to a new or empty folder`,
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
