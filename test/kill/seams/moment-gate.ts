/**
 * Stops a process at one exact moment of its work, from within the process.
 *
 * Every action that others can see (messages, queries, renamed folders, messages between threads) is reported to the gate
 * before it happens. The harness arms the gate with a file. The thread that reaches the moment writes a second file and
 * waits until the harness has killed its victim and writes a third.
 *
 * G1: a moment is reached once, by one thread of one process: the one that creates the second file.
 * G2: all threads of a process advance a shared progress, because the path of a moment may lead through several threads.
 * G3: no thread waits without end: if the harness is gone, the wait fails after a while.
 */

import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The path to a moment; the process stops at its last action. */
export interface ArmedMoment {
  /** Counts up from 1. */
  readonly id: number;
  readonly service: string;
  /** Patterns of actions, which must happen in this order and each `times` times. */
  readonly path: readonly { readonly pattern: string; readonly times: number }[];
  /** Whether the process stops before or after the last action of the path. */
  readonly stop: "before" | "after";
}

/** The report of the process that stopped at a moment. */
export interface Meeting {
  readonly pid: number;
  readonly service: string;
  /** The action at which it stopped. */
  readonly what: string;
  /** Whether everything that the process wrote before the moment has been sent. */
  readonly isOut: boolean;
}

export const ARM_FILE = "armed.json";
export const meetingFile = (id: number) => `met-${id}.json`;
export const releaseFile = (id: number) => `released-${id}`;

/** Indices in the progress that threads share: id of the moment, index in its path, count of the action there. */
const Place = { id: 0, index: 1, times: 2 } as const;
const LOOK_EVERY_MS = 1;
/** A kill takes milliseconds, but a machine may hang for a minute. */
const RELEASE_DEADLINE_MS = 300_000;
const WHAT_LENGTH = 120;

export function newProgress(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(Object.keys(Place).length * Int32Array.BYTES_PER_ELEMENT));
}

export class MomentGate {
  readonly #folder: string;
  readonly #service: string;
  readonly #progress: Int32Array<SharedArrayBuffer>;
  /** Identifies the version of the file that was read last. */
  #readMark = "";
  #armed: ArmedMoment | undefined;
  #patterns: readonly RegExp[] = [];

  constructor(folder: string, service: string, progress: Int32Array<SharedArrayBuffer>) {
    this.#folder = folder;
    this.#service = service;
    this.#progress = progress;
  }

  /** Whether a moment of this process is armed. */
  isArmed(): boolean {
    const file = statSync(join(this.#folder, ARM_FILE), { throwIfNoEntry: false });
    // Each file is new, but neither its time nor its inode alone is sure to differ from those of the one before.
    const mark = file === undefined ? "" : `${file.ino} ${file.mtimeMs}`;
    if (mark !== this.#readMark) this.#read(mark);
    return this.#armed !== undefined;
  }

  /** Reports the next action. @returns where to stop if this is the moment. */
  report(what: string): "before" | "after" | undefined {
    if (this.#armed === undefined) return undefined;
    const { path, stop } = this.#armed;
    const index = Atomics.load(this.#progress, Place.index);
    if (this.#patterns[index]?.test(what) !== true) return undefined;
    if (Atomics.add(this.#progress, Place.times, 1) + 1 < path[index]!.times) return undefined;
    Atomics.store(this.#progress, Place.times, 0);
    return Atomics.add(this.#progress, Place.index, 1) === path.length - 1 ? stop : undefined;
  }

  /** Waits until the harness releases the moment (G1, G3). */
  meet(what: string, isOut: boolean): void {
    const { id } = this.#armed ?? {};
    if (id === undefined) return;
    this.#armed = undefined;
    const meeting: Meeting = {
      pid: process.pid,
      service: this.#service,
      what: what.slice(0, WHAT_LENGTH),
      isOut,
    };
    if (!this.#claim(id, meeting)) return;
    const still = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const until = performance.now() + RELEASE_DEADLINE_MS;
    while (!existsSync(join(this.#folder, releaseFile(id)))) {
      if (performance.now() > until) throw new Error(`moment ${id} was not released`);
      Atomics.wait(still, 0, 0, LOOK_EVERY_MS);
    }
  }

  #read(mark: string): void {
    this.#readMark = mark;
    const armed =
      mark === ""
        ? undefined
        : (JSON.parse(readFileSync(join(this.#folder, ARM_FILE), "utf8")) as ArmedMoment);
    this.#armed = armed?.service === this.#service ? armed : undefined;
    if (this.#armed === undefined) return;
    this.#patterns = this.#armed.path.map(({ pattern }) => new RegExp(pattern, "s"));
    // G2: the first thread that reads a new moment resets the progress.
    if (Atomics.exchange(this.#progress, Place.id, this.#armed.id) === this.#armed.id) return;
    Atomics.store(this.#progress, Place.index, 0);
    Atomics.store(this.#progress, Place.times, 0);
  }

  /** Creates the file of the meeting. A link appears with its content, and only if the file does not exist. */
  #claim(id: number, meeting: Meeting): boolean {
    const file = join(this.#folder, meetingFile(id));
    const beside = `${file}.${process.pid}`;
    writeFileSync(beside, JSON.stringify(meeting));
    try {
      linkSync(beside, file);
      return true;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(beside, { force: true });
    }
  }
}
