/** The harness's side of the gate: arms a moment, waits for it, lets the process that stopped go on. */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Moment } from "./moments.ts";
import { ARM_FILE, type ArmedMoment, type Meeting, meetingFile, releaseFile } from "./seams/moment-gate.ts";

const PRELOAD = path.join(import.meta.dirname, "moment-preload.ts");

export class MomentControl {
  readonly #folder: string;
  #id = 0;

  /** @param folder an empty one. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** For the processes that are to be watched. */
  get environment(): Record<string, string> {
    const before = process.env.NODE_OPTIONS === undefined ? "" : `${process.env.NODE_OPTIONS} `;
    return {
      NODE_OPTIONS: `${before}--import ${pathToFileURL(PRELOAD)}`,
      HONE_TEST_MOMENTS: this.#folder,
    };
  }

  /** From now on, the first process that comes to the moment stops there. */
  arm({ service, path: steps, stop }: Moment): void {
    const armed: ArmedMoment = { id: ++this.#id, service, path: steps, stop };
    const beside = this.#file("arming");
    writeFileSync(beside, JSON.stringify(armed));
    renameSync(beside, this.#file(ARM_FILE));
  }

  /** What the process that stopped says; undefined while none did. */
  meeting(): Meeting | undefined {
    const file = this.#file(meetingFile(this.#id));
    return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Meeting) : undefined;
  }

  /** Lets the process go on that stopped, if it still lives. */
  release(): void {
    writeFileSync(this.#file(releaseFile(this.#id)), "");
  }

  /** Nothing stops any more. */
  disarm(): void {
    this.release();
    rmSync(this.#file(ARM_FILE), { force: true });
  }

  #file(name: string): string {
    return path.join(this.#folder, name);
  }
}
