/**
 * The files by which other commands know a running stack.
 *
 * K1: one process holds the lock. The lock contains the process's identity, so that the lock of a killed process is recognised.
 * K2: only the holder writes `stack.json`, atomically, and the file is valid only while its writer is running.
 * K3: a file with other content is ignored: the lock is then free, and there is no stack.
 */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identifyProcess, isRunning, type ProcessIdentity } from "@hone/embedded";
import { UsageError } from "../errors.ts";
import type { Project } from "../project.ts";
import { isReplicas, type Replicas } from "./replicas.ts";

/** One process of a service, in the stack file. */
export interface ServiceRecord {
  readonly pid: number;
  readonly httpPort: number;
  readonly restarts: number;
}

export interface StackRecord {
  /** The process that runs the stack. */
  readonly supervisor: ProcessIdentity;
  readonly startedAtMs: number;
  readonly natsUrl: string;
  /** Without a password, as readers only check whether the database answers. */
  readonly databaseUrl: string;
  readonly pageUrl: string;
  /** Token of the page, its API and, unless a key was set, the gateway's API. */
  readonly token: string;
  /** Number of processes that each service should have; 0 = the user runs it. */
  readonly replicas: Replicas;
  /** By name of the process (services.ts, N1); one that is being restarted may be missing. */
  readonly services: Readonly<Record<string, ServiceRecord>>;
  /** Processes that do not answer, including `nats-server` and `postgres`, and since when in Unix milliseconds. */
  readonly silent: Readonly<Record<string, number>>;
}

/** Holds the right to run a stack in this project. */
export interface StackLock extends Disposable {
  release(): void;
}

/** Only the owner may read the file, because it holds a password of the bus and the page's token. */
const PRIVATE = 0o600;
/** Mode of a new folder; an existing one gets its mode after the lock is taken. */
const PRIVATE_FOLDER = 0o700;

/**
 * @throws {UsageError} when a stack runs in this project already.
 */
export function takeStackLock(project: Project): StackLock {
  const own = ownIdentity();
  const beside = `${project.lockFile}.${own.pid}`;
  try {
    mkdirSync(project.state, { recursive: true, mode: PRIVATE_FOLDER });
    writeFileSync(beside, JSON.stringify(own), { mode: PRIVATE });
  } catch (cause) {
    if (!hasCode(cause, "EACCES") && !hasCode(cause, "EROFS")) throw cause;
    throw new UsageError(
      `this account cannot write to ${project.state}; remove that folder if another account made it, or choose another one with HONE_STATE_DIR`,
      { cause },
    );
  }
  try {
    // A link appears with its content, and only if the name is free, so that two starts cannot both succeed.
    for (let attempt = 0; ; attempt++) {
      try {
        linkSync(beside, project.lockFile);
        break;
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
        const holder = readIdentity(project.lockFile);
        if (holder !== undefined && isRunning(holder)) {
          throw new UsageError(
            `a stack is already running in ${project.folder} (process ${holder.pid}); hone status shows it, hone down stops it`,
          );
        }
        if (attempt > 10) throw error;
        removeStaleLock(project.lockFile, own.pid);
      }
    }
  } finally {
    rmSync(beside, { force: true });
  }
  const release = () => {
    rmSync(project.stackFile, { force: true });
    rmSync(project.lockFile, { force: true });
  };
  return { release, [Symbol.dispose]: release };
}

/** The running process that holds the lock; undefined if there is none. */
export function stackHolder(project: Project): ProcessIdentity | undefined {
  const holder = readIdentity(project.lockFile);
  return holder !== undefined && isRunning(holder) ? holder : undefined;
}

/** The running stack of this project; undefined if there is none that has started completely. */
export function readStack(project: Project): StackRecord | undefined {
  const record = readJson(project.stackFile);
  return isStackRecord(record) && isRunning(record.supervisor) ? record : undefined; // K2, K3
}

export function writeStack(project: Project, record: Omit<StackRecord, "supervisor">): void {
  mkdirSync(dirname(project.stackFile), { recursive: true });
  const beside = `${project.stackFile}.${process.pid}`;
  writeFileSync(beside, `${JSON.stringify({ supervisor: ownIdentity(), ...record }, undefined, 2)}\n`, {
    mode: PRIVATE,
  });
  renameSync(beside, project.stackFile);
}

function ownIdentity(): ProcessIdentity {
  const identity = identifyProcess(process.pid);
  if (identity === undefined)
    throw new UsageError("this system has no /proc, which Hone needs to identify processes");
  return identity;
}

/** Removes a stale lock by renaming it, which succeeds for only one of several starts. */
function removeStaleLock(lockFile: string, pid: number): void {
  const aside = `${lockFile}.stale.${pid}`;
  try {
    renameSync(lockFile, aside);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return;
    throw error;
  }
  rmSync(aside, { force: true });
}

function readIdentity(file: string): ProcessIdentity | undefined {
  const identity = readJson(file);
  return isIdentity(identity) ? identity : undefined; // K3
}

function isIdentity(value: unknown): value is ProcessIdentity {
  return isObject(value) && Number.isSafeInteger(value.pid) && typeof value.startedAt === "string";
}

function isStackRecord(value: unknown): value is StackRecord {
  if (!isObject(value) || !isIdentity(value.supervisor)) return false;
  const { startedAtMs, natsUrl, databaseUrl, pageUrl, token, replicas, services, silent } = value;
  return (
    Number.isFinite(startedAtMs) &&
    [natsUrl, databaseUrl, pageUrl, token].every((url) => typeof url === "string") &&
    isReplicas(replicas) &&
    isObject(services) &&
    Object.values(services).every(isServiceRecord) &&
    isObject(silent) &&
    Object.values(silent).every(Number.isFinite)
  );
}

function isServiceRecord(value: unknown): value is ServiceRecord {
  return isObject(value) && [value.pid, value.httpPort, value.restarts].every(Number.isSafeInteger);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    // A missing file, or one that a full disk damaged, is ignored.
    if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
