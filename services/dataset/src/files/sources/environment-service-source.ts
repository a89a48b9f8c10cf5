/**
 * A source whose tasks are those that an environment's server lists:
 *
 *     POST <url>/get_env_profile  { env_type, params: { split, … } }  -> { success, data: ["task-1", …] }
 *
 * The protocol is AgentJet's. A task's place in the list is its seed. A run that goes on after a pause asks for the list again, so
 * a server always lists the same tasks in the same order.
 */

import { type EnvironmentServiceSource, serviceEnvironmentOf } from "@hone/config";
import { z } from "zod";
import type { Task, TaskSource } from "../../domain/task.ts";
import { SourceError } from "../../errors.ts";
import { askTaskServer } from "./ask-task-server.ts";

/** A list is asked for again when no run has used it for this long, so that a run does not ask with every batch. */
const UNUSED_MS = 600_000;
/** Several runs at once, of some splits each. */
const MAX_LISTS = 64;
/** Some hundred thousand names of tasks. */
const MAX_LIST_BYTES = 16 * 1024 * 1024;

const taskId = z.union([z.string().min(1).max(1_024), z.number()]).transform(String);
const listSchema = z.union([
  z.looseObject({ success: z.literal(true).optional(), data: z.array(taskId) }).transform(({ data }) => data),
  z.looseObject({ task_ids: z.array(taskId) }).transform(({ task_ids }) => task_ids),
]);
const ALLOWED = '{ "success": true, "data": [one name a task] }';

/** The lists of tasks that servers gave, kept while runs use them. */
export class TaskLists {
  readonly #lists = new Map<string, { readonly ids: Promise<readonly string[]>; usedAt: number }>();

  /** @returns the list of this name, which is asked for where it is not kept. A failure is not kept. */
  async of(name: string, ask: () => Promise<readonly string[]>): Promise<readonly string[]> {
    const now = performance.now();
    for (const [each, { usedAt }] of this.#lists) if (now - usedAt > UNUSED_MS) this.#lists.delete(each);
    const known = this.#lists.get(name);
    if (known !== undefined) {
      known.usedAt = now;
      return known.ids;
    }
    const asked = { ids: ask(), usedAt: now };
    for (const oldest of this.#lists.keys()) {
      if (this.#lists.size < MAX_LISTS) break;
      this.#lists.delete(oldest);
    }
    this.#lists.set(name, asked);
    try {
      return await asked.ids;
    } catch (error) {
      if (this.#lists.get(name) === asked) this.#lists.delete(name);
      throw error;
    }
  }

  /** Forgets all lists, so that each is asked for again. */
  clear(): void {
    this.#lists.clear();
  }
}

export interface EnvironmentServiceParts {
  /** The bearer token; undefined = none is sent. */
  readonly key: string | undefined;
  readonly lists: TaskLists;
}

/** @throws {SourceError | RetryableError} when the server gives no list of tasks. */
export async function environmentServiceSource(
  spec: EnvironmentServiceSource,
  { key, lists }: EnvironmentServiceParts,
): Promise<TaskSource> {
  const { url, envType, split, keyVariable, config } = spec;
  const params = { split, ...(typeof config.params === "object" && config.params) };
  const name = JSON.stringify([url, envType, params, keyVariable]);
  const ids = await lists.of(name, () => askForTasks({ url, key }, envType, params));
  return {
    size: ids.length,
    read: (elements) => Promise.resolve(elements.map((element) => taskOf(spec, ids[element]!, element))),
  };
}

function taskOf(spec: EnvironmentServiceSource, id: string, seed: number): Task {
  const { environment, config } = serviceEnvironmentOf(spec, id);
  return {
    kind: "environment",
    id: `${spec.envType}:${id}`,
    environment,
    seed,
    configJson: JSON.stringify(config),
  };
}

async function askForTasks(
  { url, key }: { readonly url: string; readonly key: string | undefined },
  envType: string,
  params: Readonly<Record<string, unknown>>,
): Promise<readonly string[]> {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/get_env_profile`;
  const body = { env_type: envType, task_id: null, instance_id: null, messages: {}, params };
  const ids = await askTaskServer(
    { url: address.href, key, maxAnswerBytes: MAX_LIST_BYTES },
    body,
    listSchema,
    ALLOWED,
  );
  const unique = new Set(ids);
  if (unique.size === ids.length && ids.length > 0) return ids;
  const found =
    ids.length === 0
      ? "no task"
      : `"${ids.find((id) => !unique.delete(id))}" twice, which would be two tasks with one name`;
  throw new SourceError(
    `the environment service ${address.href} must list at least one task of "${envType}" with params ${JSON.stringify(params)}, each once, but listed ${found}`,
    { path: "split", allowed: "a split with tasks" },
  );
}
