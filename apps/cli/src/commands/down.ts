/** `hone down`: stops the stack of this project, whichever command started it. */

import { delay } from "@hone/core";
import { isRunning } from "@hone/embedded";
import { honeCommand } from "../define.ts";
import { stackHolder } from "../stack/stack-file.ts";

/** Services drain for up to ten seconds; then the bus and the database stop. */
const DOWN_DEADLINE_MS = 40_000;
const LOOK_EVERY_MS = 50;

export const downCommand = honeCommand({
  name: "down",
  description: "Stop the stack of this project; unfinished runs continue when it is up again",
  args: {},
  run: async ({ terminal, project, signal }) => {
    const holder = stackHolder(project);
    if (holder === undefined) {
      terminal.line(`no stack is running in ${project.folder}`);
      return 0;
    }
    terminal.live(`stopping the stack of process ${holder.pid} …`);
    process.kill(holder.pid, "SIGTERM");
    const until = performance.now() + DOWN_DEADLINE_MS;
    while (isRunning(holder) && performance.now() < until) await delay(LOOK_EVERY_MS, { signal });
    const isStuck = isRunning(holder);
    // Its watchdog then ends the processes that it started.
    if (isStuck) process.kill(holder.pid, "SIGKILL");
    terminal.live("");
    terminal.line(isStuck ? `killed (process ${holder.pid})` : `stopped (process ${holder.pid})`);
    return 0;
  },
});
