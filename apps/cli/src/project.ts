/**
 * Where things lie: the project folder, and in its `.hone/`, which its owner alone may enter, everything that Hone writes.
 *
 *   .hone/stack.json      what runs now: processes, addresses
 *   .hone/stack.lock      held by the one process that runs the stack
 *   .hone/logs/           one log per process
 *   .hone/ready/          one file per service, written by it once it is ready
 *   .hone/bus/            address of the bus for each of its users, with the password, once it answers
 *   .hone/database/       address of the database for each of its roles, with the password, once it answers
 *   .hone/nats/           bus: configuration and streams
 *   .hone/postgres/       database (or where it lies)
 *   .hone/runs/           weights and checkpoints of runs
 *   .hone/http-token      what the page, its API and the gateway ask for
 *   .hone/env/            settings for each service, where it is started by hand, as from an editor
 */

import { delimiter, isAbsolute, join, relative, resolve } from "node:path";
import { MODEL_FOLDERS_VARIABLE } from "@hone/config";

export interface Project {
  /** Run files, agents and data lie below it (HONE_FILES). */
  readonly folder: string;
  /** `.hone` in it (HONE_STATE_DIR). */
  readonly state: string;
  readonly stackFile: string;
  readonly lockFile: string;
  readonly logs: string;
  readonly ready: string;
  readonly bus: string;
  readonly database: string;
  readonly tokenFile: string;
  readonly environments: string;
}

/** The repository: the command line runs from its clone. */
export const REPOSITORY = resolve(import.meta.dirname, "..", "..", "..");

/** HONE_FILES and HONE_STATE_DIR choose other folders than the clone and its `.hone`. */
export function findProject(env: NodeJS.ProcessEnv = process.env): Project {
  const folder = resolve(env.HONE_FILES || REPOSITORY);
  const state = resolve(env.HONE_STATE_DIR || join(folder, ".hone"));
  return {
    folder,
    state,
    stackFile: join(state, "stack.json"),
    lockFile: join(state, "stack.lock"),
    logs: join(state, "logs"),
    ready: join(state, "ready"),
    bus: join(state, "bus"),
    database: join(state, "database"),
    tokenFile: join(state, "http-token"),
    environments: join(state, "env"),
  };
}

/** Run files here are one's own: what they name may be started and imported. */
export const OWN_CODE = { HONE_ALLOW_COMMANDS: "yes", HONE_ALLOW_MODULES: "yes" } as const;

/** The environment of a service's code that runs in this process, on this project's folders and without servers. */
export function localEnvironment(project: Project): Readonly<Record<string, string | undefined>> {
  const servers = ["HONE_NATS_URL", "HONE_DATABASE_URL", "HONE_TRACER_DATABASE_URL"].flatMap((name) => [
    name,
    `${name}_FILE`,
  ]);
  return {
    ...process.env,
    ...Object.fromEntries(servers.map((name) => [name, undefined])),
    HONE_STATE_DIR: project.state,
    HONE_FILES: project.folder,
    ...OWN_CODE,
  };
}

/** Lets the services that this process starts read models in folders that the user named, from where they stand. */
export function allowModelFolders(folders: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  const known = env[MODEL_FOLDERS_VARIABLE] ?? "";
  const added = folders.map((folder) => resolve(userFolder(env), folder));
  env[MODEL_FOLDERS_VARIABLE] = [...known.split(delimiter), ...added]
    .filter((folder) => folder !== "")
    .join(delimiter);
}

/** Where the user stands: npm runs scripts in the package's folder and names the real one. */
export function userFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env.INIT_CWD ?? process.cwd();
}

/** A path as a person types it from where they stand; absolute where that is shorter. */
export function shownPath(path: string): string {
  const fromHere = relative(userFolder(), path);
  if (fromHere === "") return ".";
  return isAbsolute(path) && fromHere.startsWith("../..") ? path : fromHere;
}
