/** Opens the source of tasks that a run file describes. */

import type { BoundKeys, PartSource, RowSource } from "@hone/config";
import { InvalidInputError, unreachable } from "@hone/core";
import { environmentSource } from "../../domain/environment-source.ts";
import type { SourceSpec } from "../../domain/source-spec.ts";
import { mixedOrder, namedOrder, plainOrder, type TaskOrder } from "../../domain/task-order.ts";
import { SourceError } from "../../errors.ts";
import type { JsonlFile } from "../jsonl-file.ts";
import { isParquet, type RowFiles } from "../row-files.ts";
import { environmentServiceSource, TaskLists } from "./environment-service-source.ts";
import { fileSource } from "./file-source.ts";
import { httpSource } from "./http-source.ts";
import type { HubDatasets } from "./hub-datasets.ts";
import { filesOfSplit } from "./hugging-face-folder.ts";

/** What sources are opened with. */
export interface SourceParts {
  readonly files: RowFiles;
  readonly hub: HubDatasets;
  /** The keys of task servers. */
  readonly keys: BoundKeys;
  /** The lists of environment services. @default each list is asked for whenever it is needed */
  readonly taskLists?: TaskLists;
}

/** @throws {SourceError} when the source is empty or cannot be read; {RetryableError} when it may be readable later. */
export async function openSource(spec: SourceSpec, parts: SourceParts): Promise<TaskOrder> {
  switch (spec.source) {
    case "mix": {
      const orders = await Promise.all(
        spec.parts.map(async ({ name, weight = 1, groups, tasks }, index) => {
          const order = await atKey(`parts[${index}].tasks`, () => openPart(tasks, parts));
          return { weight, groups, order: name === undefined ? order : namedOrder(order, name) };
        }),
      );
      return mixedOrder(orders);
    }
    default:
      return openPart(spec, parts);
  }
}

async function openPart(spec: PartSource, parts: SourceParts): Promise<TaskOrder> {
  if (spec.source === "environment") return plainOrder(environmentSource(spec));
  if (spec.source === "environment_service") {
    const key = keyOf(spec, parts.keys);
    const lists = parts.taskLists ?? new TaskLists();
    return plainOrder(await environmentServiceSource(spec, { key, lists }));
  }
  if (spec.source !== "http") return plainOrder(fileSource(await openFiles(spec, parts)));
  return plainOrder(await httpSource({ url: spec.url, key: keyOf(spec, parts.keys) }));
}

/** @throws {SourceError} when the key is not set, or may not be sent there. */
function keyOf(
  { url, keyVariable }: { readonly url: string; readonly keyVariable?: string | undefined },
  keys: BoundKeys,
): string | undefined {
  if (keyVariable === undefined) return undefined;
  try {
    return keys.keyFor(keyVariable, url, "keyVariable");
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new SourceError(error.message, { path: "keyVariable", allowed: error.allowed }, { cause: error });
  }
}

/** Opens the files of a source that reads files. */
export async function openFiles(
  spec: Exclude<RowSource, { source: "http" }>,
  { files, hub }: Pick<SourceParts, "files" | "hub">,
): Promise<JsonlFile[]> {
  switch (spec.source) {
    case "jsonl":
    case "parquet":
      if ((spec.source === "parquet") !== isParquet(spec.path)) {
        throw new SourceError(
          spec.source === "parquet"
            ? `"${spec.path}" is not a Parquet file by its name, which ends in .parquet; give such a file, or the source jsonl`
            : `"${spec.path}" is a Parquet file by its name, which ends in .parquet; give the source parquet, or a JSON Lines file`,
          { path: "path", allowed: `a file of the kind ${spec.source}` },
        );
      }
      return [await files.open(spec.path, spec.filter)];
    case "hugging_face": {
      if (await hub.isHubId(spec.path)) {
        const fetched = await hub.filesOf(spec);
        return Promise.all(fetched.map((file) => files.openReal(file, spec.filter)));
      }
      const paths = await filesOfSplit(files.root, spec);
      return Promise.all(paths.map((path) => files.open(path, spec.filter)));
    }
    default:
      return unreachable(spec);
  }
}

/** Runs `work`, and puts `key` before the path of a SourceError that it throws. */
async function atKey<T>(key: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    const path = error.path === "" ? key : `${key}.${error.path}`;
    throw new SourceError(error.message, { path, allowed: error.allowed }, { cause: error.cause });
  }
}
