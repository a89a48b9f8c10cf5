/**
 * The name of a wheel's file, which says for what it was built:
 * `name-version(-build)?-python-abi-platform.whl` (https://packaging.python.org/en/latest/specifications/binary-distribution-format/).
 */

/** What the Python of the sandbox is, as tags of wheels name it. */
export interface PythonTags {
  /** `cp314` */
  readonly python: string;
  /** `2026_0`: the version of the binary interface that all wheels for one Pyodide share. */
  readonly abi: string;
}

/** A file's name, read. */
export interface WheelName {
  /** In the form in which names are compared: lower case, with `-`. */
  readonly name: string;
  readonly version: string;
  /** `pure` = Python alone; `compiled` = built for this Pyodide; `other` = for another Python or another machine. */
  readonly kind: "pure" | "compiled" | "other";
}

const FILE =
  /^([A-Za-z0-9](?:[A-Za-z0-9._]*[A-Za-z0-9])?)-([A-Za-z0-9._!+]+)(?:-[0-9][A-Za-z0-9._]*)?-([A-Za-z0-9._]+)-([A-Za-z0-9._]+)-([A-Za-z0-9._]+)\.whl$/;
/** Longer names are nobody's. */
const MAX_NAME_CHARACTERS = 200;

/** @returns undefined for a name that no wheel has. */
export function parseWheelName(fileName: string, tags: PythonTags): WheelName | undefined {
  if (fileName.length > MAX_NAME_CHARACTERS) return undefined;
  const match = FILE.exec(fileName);
  if (match === null) return undefined;
  const [, name = "", version = "", pythons = "", abis = "", platforms = ""] = match;
  return { name: normalName(name), version, kind: kindOf(pythons, abis, platforms, tags) };
}

/** The form in which names of packages are compared (PEP 503). */
export function normalName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, "-");
}

/** Each tag may be several, separated by dots. */
function kindOf(
  pythons: string,
  abis: string,
  platforms: string,
  { python, abi }: PythonTags,
): WheelName["kind"] {
  const has = (tags: string, ...any: readonly string[]) => tags.split(".").some((tag) => any.includes(tag));
  if (has(platforms, "any") && has(abis, "none") && has(pythons, "py3", python)) return "pure";
  if (!has(platforms, `pyemscripten_${abi}_wasm32`, `pyodide_${abi}_wasm32`)) return "other";
  if (has(abis, python) && has(pythons, python)) return "compiled";
  // The stable interface of an older Python.
  const isOlder = pythons.split(".").some((tag) => minorOf(tag) <= minorOf(python));
  return has(abis, "abi3") && isOlder ? "compiled" : "other";
}

/** 14 of `cp314`; Infinity for what is no CPython 3. */
function minorOf(tag: string): number {
  const minor = /^cp3(\d+)$/.exec(tag)?.[1];
  return minor === undefined ? Number.POSITIVE_INFINITY : Number(minor);
}
