/**
 * Stops a process at one exact moment of its work, seen from inside that process.
 *
 * Everything that a process lets out (messages, queries, renamed folders, messages between its threads) is told to
 * the gate before it happens. The harness arms the gate by a file; the thread that comes to the moment writes another
 * file, and stands still until the harness has killed its victim and writes a third.
 *
 * G1: a moment is met once, by one thread of one process: who makes the file of the meeting meets it.
 * G2: all threads of a process advance one progress, as a moment may begin in one thread and end in another.
 * G3: nobody stands still for ever: a harness that is gone fails the process that waits for it.
 */

import { existsSync, linkSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What leads to a moment: its last part is where the process stops. */
export interface ArmedMoment {
  /** Counts up from 1. */
  readonly id: number;
  readonly service: string;
  /** One after the other, each to be seen `times` times. */
  readonly path: readonly { readonly pattern: string; readonly times: number }[];
  /** Whether the last of the path has happened already when the process stops. */
  readonly stop: "before" | "after";
}

/** What the process that stopped says. */
export interface Meeting {
  readonly pid: number;
  readonly service: string;
  /** What it was about to do, or had done. */
  readonly what: string;
  /** Whether everything that came before the moment has left the process. */
  readonly isOut: boolean;
}

export const ARM_FILE = "armed.json";
export const meetingFile = (id: number) => `met-${id}.json`;
export const releaseFile = (id: number) => `released-${id}`;

/** Places in the progress that threads share: id of the moment, index in its path, times seen there. */
const Place = { id: 0, index: 1, times: 2 } as const;
const LOOK_EVERY_MS = 1;
/** A kill takes milliseconds; a machine may stand still for a minute. */
const RELEASE_DEADLINE_MS = 300_000;
const WHAT_LENGTH = 120;

export function newProgress(): Int32Array<SharedArrayBuffer> {
  return new Int32Array(new SharedArrayBuffer(Object.keys(Place).length * Int32Array.BYTES_PER_ELEMENT));
}

export class MomentGate {
  readonly #folder: string;
  readonly #service: string;
  readonly #progress: Int32Array<SharedArrayBuffer>;
  /** Of the file that was read last. */
  #readMark = "";
  #armed: ArmedMoment | undefined;
  #patterns: readonly RegExp[] = [];

  constructor(folder: string, service: string, progress: Int32Array<SharedArrayBuffer>) {
    this.#folder = folder;
    this.#service = service;
    this.#progress = progress;
  }

  /** Whether this process is to look for a moment now. */
  isArmed(): boolean {
    const file = statSync(join(this.#folder, ARM_FILE), { throwIfNoEntry: false });
    // Each file is new: neither time nor number alone is sure to differ from that of the one before.
    const mark = file === undefined ? "" : `${file.ino} ${file.mtimeMs}`;
    if (mark !== this.#readMark) this.#read(mark);
    return this.#armed !== undefined;
  }

  /** Tells what happens next. @returns where to stop, when this is the moment. */
  tell(what: string): "before" | "after" | undefined {
    if (this.#armed === undefined) return undefined;
    const { path, stop } = this.#armed;
    const index = Atomics.load(this.#progress, Place.index);
    if (this.#patterns[index]?.test(what) !== true) return undefined;
    if (Atomics.add(this.#progress, Place.times, 1) + 1 < path[index]!.times) return undefined;
    Atomics.store(this.#progress, Place.times, 0);
    return Atomics.add(this.#progress, Place.index, 1) === path.length - 1 ? stop : undefined;
  }

  /** Stands still until the harness says that its victim is dead (G1, G3). */
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
      if (performance.now() > until) throw new Error(`nobody released moment ${id}`);
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
    // G2: the first thread that reads of a new moment begins it.
    if (Atomics.exchange(this.#progress, Place.id, this.#armed.id) === this.#armed.id) return;
    Atomics.store(this.#progress, Place.index, 0);
    Atomics.store(this.#progress, Place.times, 0);
  }

  /** A link appears with its content, and only where there is none. */
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
