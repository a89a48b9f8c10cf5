/**
 * A folder of wheels that the operator lets the sandbox use, and the sets of them that runs ask for.
 *
 * F1: a run file names packages; which files there are, and so which code, is the operator's choice alone. Nothing is fetched.
 * F2: if the folder has a file SHA256SUMS, as `sha256sum *.whl > SHA256SUMS` writes it, every wheel that is used must be in it.
 * F3: a package brings with it what it needs in any case; all of it must be in the folder.
 */

import { createHash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { describeError, nearest } from "@hone/core";
import { PackageError } from "../errors.ts";
import { pythonTags } from "../pyodide-files.ts";
import { readWheel, type WheelContent } from "./read-wheel.ts";
import { normalName, parseWheelName, type WheelName } from "./wheel-name.ts";
import { type Wheel, WheelSet } from "./wheel-set.ts";

/** A package that a run wants. */
export interface WantedPackage {
  readonly name: string;
  /** SHA-256 of its wheel, as hexadecimal digits; absent = as the operator's folder has it. */
  readonly sha256?: string | undefined;
}

export const MAX_WHEEL_BYTES = 64 * 1024 * 1024;
/** All wheels of one set, packed; each process of the sandbox gets them. */
export const MAX_SET_BYTES = 128 * 1024 * 1024;
const MAX_FOLDER_FILES = 1_000;
const SUMS = "SHA256SUMS";
const MAX_SUMS_BYTES = 1024 * 1024;

interface CheckedWheel {
  readonly version: string;
  readonly wheel: Wheel;
  readonly content: WheelContent;
}

export class PackageFolder {
  readonly #folder: string;
  /** Checked wheels by file name, with the size and the time of the file that was read. */
  readonly #checked = new Map<string, CheckedWheel>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Reads and checks the wheels of some packages and of what they need.
   * @throws {PackageError} when the folder lacks one, or has it for another Python, or not as it should be.
   */
  async choose(wanted: readonly WantedPackage[]): Promise<WheelSet> {
    const known = await this.#list();
    const sums = await this.#readSums();
    const chosen = new Map<string, Wheel>();
    const waiting = wanted.map((each) => ({ ...each, name: normalName(each.name), by: "" }));
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { name, sha256, by } = next;
      const present = chosen.get(name) ?? (await this.#open(name, known, sums, by));
      const wheel = "wheel" in present ? present.wheel : present;
      if (sha256 !== undefined && sha256.toLowerCase() !== wheel.sha256) {
        throw new PackageError(
          `The package ${name} is ${wheel.fileName} with the SHA-256 ${wheel.sha256}, and the run wants ${sha256}`,
          `the digest of the wheel in the operator's folder, ${wheel.sha256}`,
        );
      }
      if (!("wheel" in present)) continue;
      chosen.set(name, wheel);
      const { needs, mayNeed } = present.content;
      const more = [...needs, ...mayNeed.filter((each) => known.has(each))];
      waiting.push(...more.map((each) => ({ name: each, by: ` (which ${name} needs)` })));
    }
    const wheels = [...chosen.values()].sort((a, b) => (a.fileName < b.fileName ? -1 : 1));
    const numBytes = wheels.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (numBytes > MAX_SET_BYTES) {
      throw new PackageError(
        `The wheels of ${wanted.map(({ name }) => name).join(", ")} have ${numBytes} bytes together; at most ${MAX_SET_BYTES} are allowed`,
        `packages whose wheels have at most ${MAX_SET_BYTES} bytes together`,
      );
    }
    return new WheelSet(wheels);
  }

  /** The usable wheels by the names of their packages; of several versions, an error names both where it is used. */
  async #list(): Promise<ReadonlyMap<string, readonly { fileName: string; parsed: WheelName }[]>> {
    const tags = await pythonTags();
    let names: string[];
    try {
      names = (await readdir(this.#folder)).filter((name) => name.endsWith(".whl")).sort();
    } catch (cause) {
      throw new PackageError(
        `The folder of packages for the sandbox cannot be read: ${describeError(cause)}`,
        "a folder of wheels",
        { cause },
      );
    }
    const known = new Map<string, { fileName: string; parsed: WheelName }[]>();
    for (const fileName of names.slice(0, MAX_FOLDER_FILES)) {
      const parsed = parseWheelName(fileName, tags);
      if (parsed === undefined) continue;
      known.set(parsed.name, [...(known.get(parsed.name) ?? []), { fileName, parsed }]);
    }
    return known;
  }

  async #open(
    name: string,
    known: ReadonlyMap<string, readonly { fileName: string; parsed: WheelName }[]>,
    sums: ReadonlyMap<string, string> | undefined,
    by: string,
  ): Promise<CheckedWheel> {
    const all = known.get(name) ?? [];
    const [found, second] = all.filter(({ parsed }) => parsed.kind !== "other");
    if (found === undefined) {
      const { python, abi } = await pythonTags();
      const usable = [...known].filter(([, files]) => files.some(({ parsed }) => parsed.kind !== "other"));
      const names = usable.map(([each]) => each);
      const meant = nearest(name, names);
      const hint = meant === undefined ? "" : ` (did you mean "${meant}"?)`;
      throw new PackageError(
        all[0] === undefined
          ? `The operator's folder has no package ${name}${by}`
          : `The operator's folder has ${name}${by} only as ${all[0].fileName}, which is for another Python; the sandbox takes wheels of Python alone (py3-none-any) and those for ${python} and pyemscripten_${abi}_wasm32`,
        `one of ${names.join(", ")}${hint}`,
      );
    }
    if (second !== undefined) {
      throw new PackageError(
        `The operator's folder has two wheels of ${name}, ${found.fileName} and ${second.fileName}; one must go`,
        "a folder with one wheel of each package",
      );
    }
    return this.#check(found.fileName, found.parsed, sums);
  }

  async #check(
    fileName: string,
    { name, version, kind }: WheelName,
    sums: ReadonlyMap<string, string> | undefined,
  ): Promise<CheckedWheel> {
    const file = path.join(this.#folder, fileName);
    const { size, mtimeMs } = await stat(file);
    if (size > MAX_WHEEL_BYTES) {
      throw new PackageError(
        `The wheel ${fileName} has ${size} bytes; at most ${MAX_WHEEL_BYTES} are allowed`,
        `wheels of at most ${MAX_WHEEL_BYTES} bytes`,
      );
    }
    let checked = this.#checked.get(fileName);
    if (checked?.version !== `${size}/${mtimeMs}`) {
      const bytes = await readFile(file);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const content = readWheel(fileName, bytes);
      const { modules } = content;
      const wheel: Wheel = {
        name,
        version,
        fileName,
        sha256,
        bytes,
        isCompiled: kind === "compiled",
        modules,
      };
      checked = { version: `${size}/${mtimeMs}`, wheel, content };
      this.#checked.set(fileName, checked);
    }
    const listed = sums?.get(fileName);
    if (sums !== undefined && listed !== checked.wheel.sha256) {
      throw new PackageError(
        `The wheel ${fileName} has the SHA-256 ${checked.wheel.sha256}, and ${SUMS} beside it says ${listed ?? "nothing of it"}`,
        `a wheel with the digest that ${SUMS} lists`,
      );
    }
    return checked;
  }

  /** F2. @returns digests by file name; undefined = there is no list. */
  async #readSums(): Promise<ReadonlyMap<string, string> | undefined> {
    const file = path.join(this.#folder, SUMS);
    let text: string;
    try {
      if ((await stat(file)).size > MAX_SUMS_BYTES)
        throw new PackageError(`${file} is too long`, "a list of digests");
      text = await readFile(file, "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    const lines = [...text.matchAll(/^([0-9a-f]{64}) [ *](.+)$/gm)];
    return new Map(lines.map(([, digest = "", name = ""]) => [name, digest]));
  }
}
