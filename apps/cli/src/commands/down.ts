/** `hone down`: ends the stack of this project, whoever started it. */

import { delay } from "@hone/core";
import { isRunning } from "@hone/embedded";
import { honeCommand } from "../define.ts";
import { stackHolder } from "../stack/stack-file.ts";

/** Services drain for up to ten seconds, then bus and database end. */
const DOWN_DEADLINE_MS = 40_000;
const LOOK_EVERY_MS = 50;

export const downCommand = honeCommand({
  name: "down",
  description: "End the stack that runs here; unfinished runs go on when it is up again",
  args: {},
  run: async ({ terminal, project, signal }) => {
    const holder = stackHolder(project);
    if (holder === undefined) {
      terminal.line(`no stack runs in ${project.folder}`);
      return 0;
    }
    terminal.live(`ending the stack of process ${holder.pid} …`);
    process.kill(holder.pid, "SIGTERM");
    const until = performance.now() + DOWN_DEADLINE_MS;
    while (isRunning(holder) && performance.now() < until) await delay(LOOK_EVERY_MS, { signal });
    const isStuck = isRunning(holder);
    // Its watchdog then ends what it started.
    if (isStuck) process.kill(holder.pid, "SIGKILL");
    terminal.live("");
    terminal.line(isStuck ? `ended by force (process ${holder.pid})` : `ended (process ${holder.pid})`);
    return 0;
  },
});
