/**
 * The file by which a service tells its supervisor that it is ready, and on which port.
 *
 * It appears whole, as it is written under another name and then renamed, and it is removed before a service that was asked
 * to stop stops being ready. A file that a killed predecessor left is removed at the start; a reader that might see it
 * compares `pid`.
 */

import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** What the file says, as JSON. */
export interface ReadyFileContent {
  readonly service: string;
  readonly pid: number;
  readonly httpPort: number;
  readonly instanceId: string;
}

export async function writeReadyFile(path: string, content: ReadyFileContent): Promise<void> {
  const beside = `${path}.${content.pid}.tmp`;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(beside, `${JSON.stringify(content)}\n`);
  await rename(beside, path);
}

/** Removes the file, whoever wrote it; it need not exist. */
export async function removeReadyFile(path: string): Promise<void> {
  await rm(path, { force: true });
}

/** Removes the file unless another process wrote it: a successor may be ready before its predecessor has stopped. */
export async function removeOwnReadyFile(path: string, pid: number): Promise<void> {
  let content: Partial<ReadyFileContent> | null;
  try {
    content = JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    // It is gone or damaged, so nobody takes it for the file of a service that is ready.
    if (error instanceof SyntaxError) return;
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  if (content?.pid === pid) await removeReadyFile(path);
}
