/** `hone start`, which `npm start` runs: starts a stack and trains the first example. */

import { join } from "node:path";
import { honeCommand } from "../define.ts";
import { REPOSITORY } from "../project.ts";
import { runOnStack } from "../run/run-on-stack.ts";

export const startCommand = honeCommand({
  name: "start",
  description: "Start a stack and train the first example; on a terminal, keep the page up until Ctrl-C",
  args: {},
  run: (session) =>
    runOnStack(session, {
      file: join(REPOSITORY, "examples", "01-frozen-lake", "run.yaml"),
      isKept: session.terminal.isInteractive,
    }),
});
