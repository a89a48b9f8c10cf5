/** The harness's side of the gate: arms a moment, waits for it, and releases the stopped process. */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Moment } from "./moments.ts";
import { ARM_FILE, type ArmedMoment, type Meeting, meetingFile, releaseFile } from "./seams/moment-gate.ts";

const PRELOAD = path.join(import.meta.dirname, "moment-preload.ts");

export class MomentControl {
  readonly #folder: string;
  #id = 0;

  /** @param folder an empty folder for the gate's files. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Environment variables for the processes to watch. */
  get environment(): Record<string, string> {
    const before = process.env.NODE_OPTIONS === undefined ? "" : `${process.env.NODE_OPTIONS} `;
    return {
      NODE_OPTIONS: `${before}--import ${pathToFileURL(PRELOAD)}`,
      HONE_TEST_MOMENTS: this.#folder,
    };
  }

  /** Lets the first process that reaches the moment from now on stop there. */
  arm({ service, path: steps, stop }: Moment): void {
    const armed: ArmedMoment = { id: ++this.#id, service, path: steps, stop };
    const beside = this.#file("arming");
    writeFileSync(beside, JSON.stringify(armed));
    renameSync(beside, this.#file(ARM_FILE));
  }

  /** The report of the stopped process; undefined until one has stopped. */
  meeting(): Meeting | undefined {
    const file = this.#file(meetingFile(this.#id));
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Meeting) : undefined;
  }

  /** Lets the stopped process continue, if it is still alive. */
  release(): void {
    writeFileSync(this.#file(releaseFile(this.#id)), "");
  }

  /** Releases the stopped process; from now on none stops. */
  disarm(): void {
    this.release();
    rmSync(this.#file(ARM_FILE), { force: true });
  }

  #file(name: string): string {
    return path.join(this.#folder, name);
  }
}
