/** In the middle of a run, the disk of the state folder is full for some time; the trainer's log is on the same disk. */

import path from "node:path";
import { test } from "node:test";
import { onSmallDisk } from "@hone/testing";
import { runThroughRefusal } from "./testing/refused-folder.ts";

const DISK_BYTES = 16 * 1024 ** 2;

test(
  "a run waits for room on the disk, names the folder, and goes on as if nothing had happened",
  {
    timeout: 240_000,
  },
  (context) =>
    onSmallDisk(context, DISK_BYTES, (disk) =>
      runThroughRefusal({
        stateDir: disk.path,
        refuse: () => disk.fill(),
        allow: () => disk.free(),
        says: /\(ENOSPC\); free some room on its disk/,
        logFile: path.join(disk.path, "trainer.log"),
      }),
    ),
);
