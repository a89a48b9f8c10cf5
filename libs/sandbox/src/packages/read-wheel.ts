/**
 * Reads and checks one wheel: a ZIP file with Python modules.
 *
 * V1: nothing is unpacked on this machine, only in this process's memory and then within a process of the sandbox. Paths that
 *     leave the archive are refused all the same.
 * V2: every file is exactly as the wheel's own RECORD says (SHA-256), and RECORD names every file. So a file that was changed,
 *     added or cut off is found, and one that claims another size than it has.
 * V3: the number of files and what they unpack to are bounded before anything is unpacked.
 */

import { createHash } from "node:crypto";
import { type UnzipFileInfo, unzipSync } from "fflate";
import { PackageError } from "../errors.ts";
import { normalName } from "./wheel-name.ts";

/** What a wheel holds, as far as it matters here. */
export interface WheelContent {
  /** Modules and packages that can be imported, without those inside packages. */
  readonly modules: readonly string[];
  /** Packages that it needs in any case, in the form in which names are compared. */
  readonly needs: readonly string[];
  /** Packages that it needs in some cases only. */
  readonly mayNeed: readonly string[];
}

/** The largest that are in use (a whole scientific stack in one wheel) stay below. */
export const MAX_UNPACKED_BYTES = 256 * 1024 * 1024;
export const MAX_WHEEL_FILES = 20_000;

/** @throws {PackageError} when it is no wheel, or not a whole and unchanged one. */
export function readWheel(fileName: string, bytes: Uint8Array): WheelContent {
  const fail = (problem: string, cause?: unknown): never => {
    throw new PackageError(`The wheel ${fileName} cannot be used: ${problem}`, "an unchanged wheel", {
      cause,
    });
  };
  const files = unpack(bytes, fail);
  const [record, ...others] = Object.keys(files).filter((name) => /^[^/]+\.dist-info\/RECORD$/.test(name));
  if (record === undefined || others.length > 0) return fail("it does not have one RECORD of its files");
  checkRecord(files, record, fail);
  const metadata = files[record.replace(/RECORD$/, "METADATA")];
  if (metadata === undefined) return fail("it has no METADATA");
  return { modules: modulesIn(Object.keys(files)), ...needsOf(new TextDecoder().decode(metadata)) };
}

type Fail = (problem: string, cause?: unknown) => never;
type Files = Readonly<Record<string, Uint8Array>>;

function unpack(bytes: Uint8Array, fail: Fail): Files {
  const seen = new Set<string>();
  let numBytes = 0;
  const filter = ({ name, size, originalSize, compression }: UnzipFileInfo) => {
    if (!isInside(name)) fail(`a path in it, ${JSON.stringify(name.slice(0, 200))}, leads out of it`); // V1
    if (seen.has(name)) fail(`it holds ${name} twice`);
    seen.add(name);
    if (compression !== 0 && compression !== 8) fail(`${name} is packed in a way that wheels do not use`);
    // Entries may share their bytes, so what they have packed counts as well.
    numBytes += Math.max(size, originalSize);
    if (seen.size > MAX_WHEEL_FILES) fail(`it holds more than ${MAX_WHEEL_FILES} files`);
    if (numBytes > MAX_UNPACKED_BYTES) fail(`it unpacks to more than ${MAX_UNPACKED_BYTES} bytes`);
    return !name.endsWith("/");
  };
  try {
    return unzipSync(bytes, { filter }); // V3: files unpack into buffers of the sizes that were counted.
  } catch (cause) {
    if (cause instanceof PackageError) throw cause;
    return fail(
      `it is no ZIP file, or a broken one (${cause instanceof Error ? cause.message : cause})`,
      cause,
    );
  }
}

/** Whether a path stays below the folder into which it is unpacked, on every system. */
function isInside(path: string): boolean {
  const parts = path.replace(/\/$/, "").split("/");
  return (
    path !== "__proto__" &&
    !/[\\:\0]/.test(path) &&
    parts.every((part) => part !== "" && part !== "." && part !== "..")
  );
}

/** V2: lines are `path,sha256=<base64 for URLs>,size`; signatures of RECORD itself have none. */
function checkRecord(files: Files, record: string, fail: Fail): void {
  const digests = new Map(
    new TextDecoder()
      .decode(files[record])
      .split(/\r?\n/)
      .filter((line) => line !== "")
      .map((line) => {
        // A path with a comma stands in quotes.
        const [, quoted, plain = "", digest = ""] = /^(?:"((?:[^"]|"")*)"|([^,]*)),([^,]*),/.exec(line) ?? [];
        return [quoted?.replaceAll('""', '"') ?? plain, digest];
      }),
  );
  const isSignature = (name: string) => [record, `${record}.jws`, `${record}.p7s`].includes(name);
  for (const [name, content] of Object.entries(files)) {
    if (isSignature(name)) continue;
    const digest = `sha256=${createHash("sha256").update(content).digest("base64url")}`;
    if (digests.get(name) !== digest) fail(`its RECORD does not have ${name} as it is`);
  }
  const missing = [...digests.keys()].find((name) => files[name] === undefined && !isSignature(name));
  if (missing !== undefined) fail(`it lacks ${missing}, which its RECORD names`);
}

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_]*$/;

function modulesIn(names: readonly string[]): string[] {
  const modules = names.flatMap((name) => {
    const [first = "", second] = name.split("/");
    if (second === "__init__.py" && name === `${first}/__init__.py`) return [first];
    return second === undefined && first.endsWith(".py") ? [first.slice(0, -".py".length)] : [];
  });
  return modules.filter((module) => IDENTIFIER.test(module)).sort();
}

/** Reads `Requires-Dist: name (conditions) ; marker`. What an extra of the package needs is not needed here. */
function needsOf(metadata: string): Pick<WheelContent, "needs" | "mayNeed"> {
  const [header = ""] = metadata.split(/\r?\n\r?\n/);
  const needs: string[] = [];
  const mayNeed: string[] = [];
  for (const [, name = "", marker] of header.matchAll(
    /^Requires-Dist:\s*([A-Za-z0-9._-]+)[^;\r\n]*(?:;(.*))?$/gm,
  )) {
    if (marker === undefined) needs.push(normalName(name));
    else if (!/\bextra\b/.test(marker)) mayNeed.push(normalName(name));
  }
  return { needs, mayNeed };
}
