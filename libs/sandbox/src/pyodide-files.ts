/** Reads, once, what a child process gets over its standard input: its program and the files of Pyodide. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import type { PythonTags } from "./packages/wheel-name.ts";

const FOLDER = path.dirname(createRequire(import.meta.url).resolve("pyodide"));
const NAMES = [
  "pyodide.mjs",
  "pyodide.asm.mjs",
  "pyodide.asm.wasm",
  "python_stdlib.zip",
  "pyodide-lock.json",
];

export interface ChildFiles {
  /** TypeScript without imports. */
  readonly program: string;
  readonly pyodide: ReadonlyMap<string, Uint8Array>;
}

/** What the Python of the sandbox is, as tags of wheels name it. */
export async function pythonTags(): Promise<PythonTags> {
  const { pyodide } = await readChildFiles();
  const { info } = JSON.parse(Buffer.from(pyodide.get("pyodide-lock.json") ?? "").toString()) as {
    info: { python: string; abi_version: string };
  };
  const [major, minor] = info.python.split(".");
  return { python: `cp${major}${minor}`, abi: info.abi_version };
}

let files: Promise<ChildFiles> | undefined;

export function readChildFiles(): Promise<ChildFiles> {
  files ??= readAll().catch((error: unknown) => {
    files = undefined;
    throw error;
  });
  return files;
}

async function readAll(): Promise<ChildFiles> {
  const program = await readFile(path.join(import.meta.dirname, "child.ts"), "utf8");
  const contents = await Promise.all(NAMES.map((name) => readFile(path.join(FOLDER, name))));
  return { program, pyodide: new Map(NAMES.map((name, i) => [name, contents[i] as Uint8Array])) };
}
