/** A small file system in memory that a test can fill. It needs the right to mount, as root on Linux has. */

import { execFile } from "node:child_process";
import { appendFile, mkdir, rm } from "node:fs/promises";
import path from "node:path";
import type { TestContext } from "node:test";
import { promisify } from "node:util";
import { temporaryFolder } from "./servers.ts";

const run = promisify(execFile);
const FILL = "fill";
const FILL_STEP_BYTES = 16_384;

export interface SmallDisk extends AsyncDisposable {
  readonly path: string;
  /** Fills the disk until no byte is free. */
  fill(): Promise<void>;
  /** Frees the space again. */
  free(): Promise<void>;
  /** Makes it read-only; files that are open for writing prevent that. */
  protect(): Promise<void>;
  /** Makes it writable again. */
  unprotect(): Promise<void>;
}

/** Runs the body of a test with a small disk. If none can be mounted, it skips the test with the reason. */
export async function onSmallDisk(
  context: TestContext,
  bytes: number,
  body: (disk: SmallDisk) => Promise<void>,
): Promise<void> {
  const disk = await smallDisk(bytes);
  if ("reason" in disk) {
    context.diagnostic(disk.reason);
    context.skip(disk.reason);
    return;
  }
  try {
    await body(disk);
  } finally {
    await disk[Symbol.asyncDispose]();
  }
}

/** @returns the disk, or why there can be none on this machine. */
async function smallDisk(bytes: number): Promise<SmallDisk | { readonly reason: string }> {
  const folder = await temporaryFolder("disk");
  const mounted = path.join(folder.path, "mounted");
  await mkdir(mounted);
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=755`, "tmpfs", mounted]);
  } catch (error) {
    await folder[Symbol.asyncDispose]();
    return { reason: `this machine does not allow the test to mount a disk (${String(error)})` };
  }
  const fillFile = path.join(mounted, FILL);
  return {
    path: mounted,
    async fill() {
      for (let step = FILL_STEP_BYTES; step >= 1; ) {
        try {
          await appendFile(fillFile, Buffer.alloc(step));
        } catch {
          step = Math.floor(step / 2);
        }
      }
    },
    free: () => rm(fillFile, { force: true }),
    protect: () => remount(mounted, "ro"),
    unprotect: () => remount(mounted, "rw"),
    async [Symbol.asyncDispose]() {
      await run("umount", ["-l", mounted]);
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function remount(mounted: string, access: "ro" | "rw"): Promise<void> {
  await run("mount", ["-o", `remount,${access}`, mounted]);
}
