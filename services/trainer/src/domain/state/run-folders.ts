/**
 * Where a run keeps its files, below the state folder.
 *
 *   runs/<run>/tokenizer/                      tokenizer files, as they stand in the run file
 *   runs/<run>/model/                          where a pretrained model came from, and the base of adapters
 *   runs/<run>/models/<name>/                  where a teacher's model came from, or that which a critic begins with
 *   runs/<run>/state/<version>-<epoch>/        weights, optimizer and what else the engine needs to go on
 *   runs/<run>/state/.new-<version>-<epoch>/   the same while it is written
 *   runs/<run>/state/.new-start-<epoch>/       weights that training starts from, while workers of other nodes read them
 *   runs/<run>/state/reference/                weights of version 0, where the run has a KL term against them
 *   runs/<run>/rollouts/<step>-<epoch>/        the rollouts of a step, where the run keeps them
 *   runs/<run>/kept-states/<version>/          the whole state of a version that a replay may begin with, where the run keeps such
 *   runs/<run>/kept-states/.new-<version>-<epoch>/  the same while it is written
 *   runs/<run>/earlier/<policy>-<version>/     weights of a version that a role is played with
 *   runs/<run>/earlier/.new-<policy>-<version>-<epoch>/  the same while it is written
 *   runs/<run>/checkpoints/step-<k>/           Hugging Face folders for people
 *   runs/<run>/checkpoints/.new-step-<k>-<epoch>/   the same while it is written
 *
 * F1: a folder without a leading "." is complete and on the disk: it is written under its ".new-" name, synced, then renamed.
 * F2: two owners of a run, one of which does not know yet that its epoch is over, never write the same folder: an
 *     unfinished folder has its owner's epoch in its name, and neither of them replaces a complete one.
 * F3: relative paths use "/", so that they mean the same on every machine.
 */

import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { fileRefusal } from "@hone/core";
import { FolderRefusedError } from "../errors.ts";

const UNFINISHED = ".new-";

/** Which states of a run are needed. */
export interface NeededStates {
  /** The folder of the last version, as the database names it; undefined before version 0. */
  readonly committed?: string;
  /** The folder of the state from which a restart goes on, as the database names it. */
  readonly recovery: string | undefined;
  /** Versions from this one on may still be read. @default 0 */
  readonly oldestVersion?: number;
  readonly epoch: number;
}

export class RunFolders {
  readonly #stateRoot: string;
  readonly #run: string;

  /** @param stateRoot the folder that relative paths start from (HONE_STATE_DIR). */
  constructor(stateRoot: string, runId: string) {
    this.#stateRoot = stateRoot;
    this.#run = `runs/${runId}`;
  }

  get tokenizer(): string {
    return `${this.#run}/tokenizer`;
  }

  get model(): string {
    return `${this.#run}/model`;
  }

  /** @param name as `otherModels` gives it. */
  otherModel(name: string): string {
    return `${this.#run}/models/${name}`;
  }

  /** The folder that holds the states. */
  get states(): string {
    return `${this.#run}/state`;
  }

  state(version: number, epoch: number): string {
    return `${this.#run}/state/${version}-${epoch}`;
  }

  /** The state within the warm start after this many updates. */
  warmState(updates: number, epoch: number): string {
    return `${this.#run}/state/warm-${updates}-${epoch}`;
  }

  /** Where an owner puts the weights that training starts from, for its workers; removed once they have read them. */
  startWeights(epoch: number): string {
    return `${this.#run}/state/${UNFINISHED}start-${epoch}`;
  }

  /** At the same depth as a state, because both name the base of adapters relative to themselves. */
  get reference(): string {
    return `${this.#run}/state/reference`;
  }

  /** The folder that holds the rollouts of all steps, where the run keeps them. */
  get allRollouts(): string {
    return `${this.#run}/rollouts`;
  }

  rollouts(step: number, epoch: number): string {
    return `${this.allRollouts}/${step}-${epoch}`;
  }

  /** The folder of each step whose rollouts are kept; of several owners' that of the last one. */
  async keptSteps(): Promise<ReadonlyMap<number, string>> {
    const names = await this.using(this.allRollouts, () => namesIn(this.absolute(this.allRollouts)));
    const kept = names
      .map((name) => /^(\d+)-(\d+)$/.exec(name))
      .filter((match) => match !== null)
      .map(([, step, epoch]) => ({ step: Number(step), epoch: Number(epoch) }))
      .sort((a, b) => a.epoch - b.epoch);
    return new Map(kept.map(({ step, epoch }) => [step, this.rollouts(step, epoch)]));
  }

  /** The folder that holds the states that a replay may begin with, where the run keeps such. */
  get allKeptStates(): string {
    return `${this.#run}/kept-states`;
  }

  /** At the same depth as a state, for the reason that holds for {@link reference}. */
  keptState(version: number): string {
    return `${this.allKeptStates}/${version}`;
  }

  /** The versions whose states are kept, ascending. */
  keptStates(): Promise<number[]> {
    return this.#numbersIn(this.allKeptStates, /^(\d+)$/);
  }

  /** At the same depth as a state, for the reason that holds for {@link reference}. */
  earlier(policy: string, version: number): string {
    return `${this.#run}/earlier/${policy}-${version}`;
  }

  /** The versions whose weights are kept for a policy that is earlier versions, ascending. */
  earlierVersions(policy: string): Promise<number[]> {
    return this.#numbersIn(`${this.#run}/earlier`, new RegExp(`^${policy}-(\\d+)$`));
  }

  /** The folders of another run, below the same state folder. */
  ofRun(runId: string): RunFolders {
    return new RunFolders(this.#stateRoot, runId);
  }

  checkpoint(step: number): string {
    return `${this.#run}/checkpoints/step-${step}`;
  }

  absolute(relative: string): string {
    return path.join(this.#stateRoot, relative);
  }

  /**
   * Writes a folder so that it exists complete or not at all (F1). `write` gets the absolute path of an empty folder.
   * @throws {FolderRefusedError} when it cannot be written now; what was written is removed as soon as that is possible.
   */
  writeWhole<T>(relative: string, write: (folder: string) => Promise<T>): Promise<T> {
    return this.#write(relative, "", write, async (unfinished, target) => {
      await rm(target, { recursive: true, force: true });
      await rename(unfinished, target);
    });
  }

  /**
   * Writes a checkpoint; if another owner has finished one of the same version meanwhile, that one is left as it is (F2).
   * @throws {FolderRefusedError} as {@link writeWhole} does.
   */
  async writeCheckpoint(
    step: number,
    epoch: number,
    write: (folder: string) => Promise<unknown>,
  ): Promise<void> {
    await this.#writeOnce(this.checkpoint(step), epoch, write);
  }

  /**
   * Keeps the state of a committed version unless that is done, and removes what owners of earlier epochs left unfinished.
   * @throws {FolderRefusedError} as {@link writeWhole} does.
   */
  async writeKeptState(
    version: number,
    epoch: number,
    write: (folder: string) => Promise<unknown>,
  ): Promise<void> {
    const folder = this.keptState(version);
    if (!(await this.exists(folder))) await this.#writeOnce(folder, epoch, write);
    await this.using(this.allKeptStates, () => this.#removeUnfinished(this.allKeptStates, epoch));
  }

  /**
   * Keeps the weights of a version that a role is played with, unless that is done.
   * @throws {FolderRefusedError} as {@link writeWhole} does.
   */
  async writeEarlier(
    policy: string,
    version: number,
    epoch: number,
    write: (folder: string) => Promise<unknown>,
  ): Promise<void> {
    const folder = this.earlier(policy, version);
    if (!(await this.exists(folder))) await this.#writeOnce(folder, epoch, write);
    await this.using(`${this.#run}/earlier`, () => this.#removeUnfinished(`${this.#run}/earlier`, epoch));
  }

  /**
   * Writes the reference unless it exists: every owner makes the same one (F2).
   * @throws {FolderRefusedError} as {@link writeWhole} does.
   */
  async writeReference(epoch: number, write: (folder: string) => Promise<unknown>): Promise<void> {
    if (!(await this.exists(this.reference))) await this.#writeOnce(this.reference, epoch, write);
  }

  async #writeOnce(
    relative: string,
    epoch: number,
    write: (folder: string) => Promise<unknown>,
  ): Promise<void> {
    await this.#write(relative, `-${epoch}`, write, async (unfinished, target) => {
      try {
        await rename(unfinished, target);
      } catch (error) {
        if (!(await this.exists(relative))) throw error;
        await rm(unfinished, { recursive: true, force: true });
      }
    });
  }

  async #write<T>(
    relative: string,
    suffix: string,
    write: (folder: string) => Promise<T>,
    finish: (unfinished: string, target: string) => Promise<void>,
  ): Promise<T> {
    const target = this.absolute(relative);
    const parent = path.dirname(target);
    const unfinished = path.join(parent, `${UNFINISHED}${path.basename(target)}${suffix}`);
    try {
      await rm(unfinished, { recursive: true, force: true });
      await makeFolder(unfinished);
      const result = await write(unfinished);
      await syncTree(unfinished);
      await finish(unfinished, target);
      await syncFolder(parent);
      return result;
    } catch (error) {
      const code = fileRefusal(error);
      if (code === undefined) throw error;
      // Where this is refused, too, the next try removes the folder before it writes.
      await rm(unfinished, { recursive: true, force: true }).catch(() => undefined);
      throw new FolderRefusedError(target, code, { cause: error });
    }
  }

  /** Does something in a folder. @throws {FolderRefusedError} when the operating system refuses it for now. */
  async using<T>(relative: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = fileRefusal(error);
      if (code === undefined || error instanceof FolderRefusedError) throw error;
      throw new FolderRefusedError(this.absolute(relative), code, { cause: error });
    }
  }

  async exists(relative: string): Promise<boolean> {
    return stat(this.absolute(relative)).then(
      () => true,
      () => false,
    );
  }

  /**
   * Removes states that nobody needs: older ones, and those that an earlier epoch left without a commit.
   * @throws {FolderRefusedError} when the operating system refuses that for now.
   */
  removeOldStates(needed: NeededStates): Promise<void> {
    return this.using(`${this.#run}/state`, () => this.#removeOldStates(needed));
  }

  async #removeOldStates({ committed, recovery, oldestVersion = 0, epoch }: NeededStates): Promise<void> {
    const folder = this.absolute(`${this.#run}/state`);
    const needed = [committed, recovery].map((each) => (each === undefined ? "" : path.basename(each)));
    for (const name of await namesIn(folder)) {
      const madeBefore = /^\.new-(?:reference|start)-(\d+)$/.exec(name)?.[1];
      if (madeBefore !== undefined && Number(madeBefore) < epoch) {
        await rm(path.join(folder, name), { recursive: true, force: true });
      }
      const match = /^(\.new-)?(warm-)?(\d+)-(\d+)$/.exec(name);
      if (match === null || needed.includes(name)) continue;
      const isUnfinished = match[1] !== undefined;
      const isWarm = match[2] !== undefined;
      const [version, madeBy] = [isWarm ? Number.NEGATIVE_INFINITY : Number(match[3]), Number(match[4])];
      // A state of this epoch may still be being written; one of a later epoch belongs to another owner.
      const isBeyond = committed !== undefined && version >= versionOf(committed);
      const isAbandoned = madeBy < epoch && (isUnfinished || isBeyond);
      const isOld = madeBy <= epoch && !isUnfinished && version < oldestVersion;
      if (isAbandoned || isOld) await rm(path.join(folder, name), { recursive: true, force: true });
    }
  }

  /** Steps of the existing checkpoints, ascending. */
  checkpoints(): Promise<number[]> {
    return this.#numbersIn(`${this.#run}/checkpoints`, /^step-(\d+)$/);
  }

  /** The numbers in the names in a folder, ascending. */
  async #numbersIn(relative: string, name: RegExp): Promise<number[]> {
    const names = await this.using(relative, () => namesIn(this.absolute(relative)));
    return names
      .map((each) => name.exec(each)?.[1])
      .filter((number) => number !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Keeps the newest `keep` checkpoints, and removes what owners of earlier epochs left unfinished. */
  removeOldCheckpoints(keep: number, epoch: number): Promise<void> {
    return this.using(`${this.#run}/checkpoints`, () => this.#removeOldCheckpoints(keep, epoch));
  }

  async #removeOldCheckpoints(keep: number, epoch: number): Promise<void> {
    await this.#removeUnfinished(`${this.#run}/checkpoints`, epoch);
    for (const step of (await this.checkpoints()).slice(0, -keep)) {
      await rm(this.absolute(this.checkpoint(step)), { recursive: true, force: true });
    }
  }

  /** Removes what owners of earlier epochs left unfinished in a folder whose folders are written once. */
  async #removeUnfinished(relative: string, epoch: number): Promise<void> {
    const folder = this.absolute(relative);
    for (const name of await namesIn(folder)) {
      const madeBy = /^\.new-(?:[a-z][a-z0-9-]*-)?\d+-(\d+)$/.exec(name)?.[1];
      if (madeBy !== undefined && Number(madeBy) < epoch) {
        await rm(path.join(folder, name), { recursive: true, force: true });
      }
    }
  }

  /** Removes all files of the run. */
  async removeAll(): Promise<void> {
    await rm(this.absolute(this.#run), { recursive: true, force: true });
  }
}

function versionOf(stateFolder: string): number {
  return Number(path.basename(stateFolder).split("-")[0]);
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** Makes a folder and those above it. `recursive` would report a read-only file system as a missing folder. */
async function makeFolder(folder: string): Promise<void> {
  const code = await mkdir(folder).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST" && error.code !== "ENOENT") throw error;
      return error.code;
    },
  );
  if (code !== "ENOENT") return;
  await makeFolder(path.dirname(folder));
  await mkdir(folder);
}

/** Syncs every file and folder below `folder` to the disk: all files at once, which costs the disk about as much as one. */
async function syncTree(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  await Promise.all(
    entries.map((entry) => {
      const full = path.join(folder, entry.name);
      return entry.isDirectory() ? syncTree(full) : syncFile(full);
    }),
  );
  await syncFolder(folder);
}

async function syncFile(file: string): Promise<void> {
  const handle = await open(file, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A rename is durable once the folder that holds the name is synced. */
async function syncFolder(folder: string): Promise<void> {
  await syncFile(folder);
}
