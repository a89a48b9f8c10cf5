/** Text files in a container, read and written by commands that every image with a shell has. */

import { InvalidInputError } from "@hone/core";
import type { CommandEnd } from "@hone/sandbox";

/** Runs a command of the file tools. */
export type RunCommand = (command: readonly string[], maxOutputBytes: number) => Promise<CommandEnd>;

/** Larger files are not for a model to read or write at once. */
export const MAX_FILE_BYTES = 1024 * 1024;
/** Linux takes at most 128 KiB for one argument of a program. */
const MAX_PART_BYTES = 96 * 1024;
const READ = 'exec cat -- "$1"';
const BEGIN = 'mkdir -p -- "$(dirname -- "$1")" && printf %s "$2" > "$1"';
const APPEND = 'printf %s "$2" >> "$1"';

/** @throws {InvalidInputError} when the file cannot be read, is too large or is no text. */
export async function readWholeFile(path: string, run: RunCommand): Promise<string> {
  const { bytes, droppedBytes } = await outputOf(path, "read", run(shell(READ, path), MAX_FILE_BYTES));
  if (droppedBytes > 0) throw refusal(path, "read", `it has more than ${MAX_FILE_BYTES} bytes`);
  if (bytes.includes(0)) throw refusal(path, "read", "it is no text");
  return bytes.toString();
}

/** Writes a file, with the folders above it. @throws {InvalidInputError} when it cannot be written. */
export async function writeWholeFile(path: string, content: string, run: RunCommand): Promise<void> {
  if (content.includes("\0")) throw refusal(path, "write", "a text cannot have the character NUL");
  if (Buffer.byteLength(content) > MAX_FILE_BYTES) {
    throw refusal(path, "write", `a file has at most ${MAX_FILE_BYTES} bytes`);
  }
  for (const [index, part] of partsOf(content).entries()) {
    await outputOf(path, "write", run([...shell(index === 0 ? BEGIN : APPEND, path), part], 1_000));
  }
}

/** @throws {InvalidInputError} unless the text to replace occurs exactly once. */
export function replaceOnce(text: string, from: string, to: string): string {
  const [before, after, more] = text.split(from);
  if (after === undefined) throw new InvalidInputError("old_text does not occur in the file", ONCE);
  if (more !== undefined) throw new InvalidInputError("old_text occurs more than once in the file", ONCE);
  return `${before}${to}${after}`;
}

const ONCE = { path: "old_text", allowed: "a text that occurs exactly once" };

/** @param from from 1. */
export function sliceLines(text: string, from: number, count: number): string {
  const lines = text.split("\n");
  if (from === 1 && count >= lines.length) return text === "" ? "(empty)" : text;
  const shown = lines.slice(from - 1, from - 1 + count);
  return shown.length === 0 ? `(the file has ${lines.length} lines)` : shown.join("\n");
}

/** A path that begins with `-` is no option. */
function shell(script: string, path: string): string[] {
  return ["/bin/sh", "-c", script, "hone", path];
}

async function outputOf(path: string, action: string, running: Promise<CommandEnd>) {
  const end = await running;
  if (end.kind === "ended" && end.exitCode === 0) return end.output;
  if (end.kind === "lost") throw refusal(path, action, `the container had to be replaced, as ${end.reason}`);
  if (end.kind === "timed_out") throw refusal(path, action, "it took too long");
  const told = end.output.bytes.toString().trim().slice(0, 500);
  throw refusal(path, action, told === "" ? `exit code ${end.exitCode}` : told);
}

function refusal(path: string, action: string, problem: string): InvalidInputError {
  return new InvalidInputError(`${path} cannot be ${action === "read" ? "read" : "written"}: ${problem}`, {
    path: "path",
    allowed: "a text file of the container",
  });
}

/** Parts of at most {@link MAX_PART_BYTES}; one empty part for an empty text. */
function partsOf(content: string): string[] {
  const parts: string[] = [];
  let rest = Buffer.from(content);
  while (rest.length > MAX_PART_BYTES) {
    let at = MAX_PART_BYTES;
    // Not within a character: its further bytes begin with the bits 10.
    while (((rest[at] ?? 0) & 0xc0) === 0x80) at--;
    parts.push(rest.subarray(0, at).toString());
    rest = rest.subarray(at);
  }
  return [...parts, rest.toString()];
}
