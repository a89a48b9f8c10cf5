/** In the middle of a run, the state folder cannot be written for some time: it is read-only, or the permissions are gone. */

import { execFile } from "node:child_process";
import { chmod, chown } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { onSmallDisk, temporaryFolder } from "@hone/testing";
import { runThroughRefusal } from "./testing/refused-folder.ts";

const DISK_BYTES = 16 * 1024 ** 2;
const TIMEOUT_MS = 240_000;
/** The account `nobody`; permissions do not apply to root. */
const ORDINARY_UID = 65_534;

test(
  "a run waits while its file system is read-only, says so, and goes on as if nothing had happened",
  {
    timeout: TIMEOUT_MS,
  },
  (context) =>
    onSmallDisk(context, DISK_BYTES, (disk) =>
      runThroughRefusal({
        stateDir: disk.path,
        refuse: () => disk.protect(),
        allow: () => disk.unprotect(),
        says: /\(EROFS\); mount its file system for writing/,
      }),
    ),
);

test("a run whose account loses the permission to write waits for it, and continues as if nothing had happened", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  await using folder = await temporaryFolder("rights");
  const isRoot = process.getuid?.() === 0;
  if (isRoot && !(await canEnterRepository())) {
    context.skip("the repository lies where the account nobody, which this needs, cannot enter");
    return;
  }
  if (isRoot) await chown(folder.path, ORDINARY_UID, ORDINARY_UID);
  const states = (runId: string) => path.join(folder.path, "runs", runId, "state");
  await runThroughRefusal({
    stateDir: folder.path,
    refuse: (runId) => chmod(states(runId), 0o555),
    allow: (runId) => chmod(states(runId), 0o755),
    says: /\(EACCES\); give the trainer's account the right to read and write there/,
    ...(isRoot && { uid: ORDINARY_UID }),
  });
});

/** @returns whether the account without permissions can start the programs of this repository. */
function canEnterRepository(): Promise<boolean> {
  return promisify(execFile)(process.execPath, ["--version"], { uid: ORDINARY_UID, cwd: "/" }).then(
    () => true,
    () => false,
  );
}

test("a run whose folder becomes immutable waits for it, and continues as if nothing had happened", {
  timeout: TIMEOUT_MS,
}, async (context) => {
  await using folder = await temporaryFolder("immutable");
  const run = promisify(execFile);
  try {
    await run("chattr", ["+i", folder.path]);
    await run("chattr", ["-i", folder.path]);
  } catch (error) {
    context.skip(`nothing can be made immutable here (${String(error)})`);
    return;
  }
  const states = (runId: string) => path.join(folder.path, "runs", runId, "state");
  await runThroughRefusal({
    stateDir: folder.path,
    refuse: (runId) => run("chattr", ["+i", states(runId)]),
    allow: (runId) => run("chattr", ["-i", states(runId)]),
    says: /\(EPERM\); give the trainer's account the right/,
  });
});
