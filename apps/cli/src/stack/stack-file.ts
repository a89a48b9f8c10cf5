/**
 * What other terminals know of a running stack.
 *
 * K1: one process holds the lock; its identity is in it, so a lock that a killed process left is recognised.
 * K2: `stack.json` is written whole, only by the holder, and only counts while its writer runs.
 * K3: a file that holds anything else says nothing: the lock is free, and no stack is known.
 */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { identifyProcess, isRunning, type ProcessIdentity } from "@hone/embedded";
import { UsageError } from "../errors.ts";
import type { Project } from "../project.ts";
import { isReplicas, type Replicas } from "./replicas.ts";

/** A service as other terminals see it. */
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
  /** Without a password: whoever reads this asks only whether it answers. */
  readonly databaseUrl: string;
  readonly pageUrl: string;
  /** Of the page, its API, and of the gateway's where no key was set. */
  readonly token: string;
  /** Processes that each service is to have; 0 = somebody else runs it. */
  readonly replicas: Replicas;
  /** By name of the process (services.ts, N1); one that is being started again may be missing. */
  readonly services: Readonly<Record<string, ServiceRecord>>;
  /** Services, `nats-server` and `postgres`: since when (Unix milliseconds) those are silent that do not answer. */
  readonly silent: Readonly<Record<string, number>>;
}

/** Holds the right to run a stack in this project. */
export interface StackLock extends Disposable {
  release(): void;
}

/** Only its owner may read it: it holds a password of the bus, and the page's token. */
const PRIVATE = 0o600;
/** One that is there is closed by whoever gets the lock. */
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
      `Cannot start a stack as this account must be able to write ${project.state}: current value is no; remove that folder if another account made it, or choose another one with HONE_STATE_DIR`,
      { cause },
    );
  }
  try {
    // A link appears with its content, and only where there is none: two starts cannot both succeed.
    for (let attempt = 0; ; attempt++) {
      try {
        linkSync(beside, project.lockFile);
        break;
      } catch (error) {
        if (!hasCode(error, "EEXIST")) throw error;
        const holder = readIdentity(project.lockFile);
        if (holder !== undefined && isRunning(holder)) {
          throw new UsageError(
            `Cannot start a stack as one runs in ${project.folder} already: current value is process ${holder.pid}; see hone status, end it with hone down`,
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

/** The process that holds the lock and runs; undefined when there is none. */
export function stackHolder(project: Project): ProcessIdentity | undefined {
  const holder = readIdentity(project.lockFile);
  return holder !== undefined && isRunning(holder) ? holder : undefined;
}

/** The stack that runs in this project and is complete; undefined when there is none. */
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
    throw new UsageError("Cannot read /proc as the system must tell about processes: current value is none");
  return identity;
}

/** Moving it aside picks one winner among several starts that see the same stale lock. */
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
    // Missing, or damaged by a full disk: both mean that it says nothing.
    if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
