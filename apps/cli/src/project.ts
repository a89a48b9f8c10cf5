/**
 * The folders and files of a project. Everything that Hone writes is in `.hone/`, which only its owner may enter.
 *
 *   .hone/stack.json      the stack that runs now: its processes and addresses
 *   .hone/stack.lock      held by the one process that runs the stack
 *   .hone/logs/           one log per process
 *   .hone/ready/          one file per service, which the service writes once it is ready
 *   .hone/bus/            the address of the bus, with the password, for each of its users; written once the bus answers
 *   .hone/database/       the address of the database, with the password, for each of its roles; written once it answers
 *   .hone/nats/           configuration and streams of the bus
 *   .hone/postgres/       the database, or a note of where it is
 *   .hone/runs/           weights and checkpoints of runs
 *   .hone/http-token      the token that the page, its API and the gateway require
 *   .hone/env/            settings for services that are started by hand, for example from an editor
 */

import { delimiter, isAbsolute, join, relative, resolve } from "node:path";
import { MODEL_FOLDERS_VARIABLE } from "@hone/config";

export interface Project {
  /** The folder that holds run files, agents and data (HONE_FILES). */
  readonly folder: string;
  /** `.hone` in that folder, or HONE_STATE_DIR. */
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

/** The clone of the repository that this command line runs from. */
export const REPOSITORY = resolve(import.meta.dirname, "..", "..", "..");

/** The folders of HONE_FILES and HONE_STATE_DIR; by default the clone and its `.hone`. */
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

/** Run files on one's own machine are trusted: their commands may be started and their modules imported. */
export const OWN_CODE = { HONE_ALLOW_COMMANDS: "yes", HONE_ALLOW_MODULES: "yes" } as const;

/** The environment for service code that runs in this process: this project's folders, and no bus or database. */
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

/** Lets the services that this process starts read models in these folders, which are relative to the user's folder. */
export function allowModelFolders(folders: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
  const known = env[MODEL_FOLDERS_VARIABLE] ?? "";
  const added = folders.map((folder) => resolve(userFolder(env), folder));
  env[MODEL_FOLDERS_VARIABLE] = [...known.split(delimiter), ...added]
    .filter((folder) => folder !== "")
    .join(delimiter);
}

/** The user's current folder. npm runs scripts in the package's folder and passes the user's in INIT_CWD. */
export function userFolder(env: NodeJS.ProcessEnv = process.env): string {
  return env.INIT_CWD ?? process.cwd();
}

/** A path relative to the user's folder, or absolute if it is not near. */
export function shownPath(path: string): string {
  const fromHere = relative(userFolder(), path);
  if (fromHere === "") return ".";
  return isAbsolute(path) && fromHere.startsWith("../..") ? path : fromHere;
}
