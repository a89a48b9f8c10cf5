/** `hone run FILE`: trains the run of a run file. */

import { resolve } from "node:path";
import { inProcessArgs, openInProcess } from "../debug/debugger-args.ts";
import { honeCommand } from "../define.ts";
import { userFolder } from "../project.ts";
import { runOnStack } from "../run/run-on-stack.ts";

export const runCommand = honeCommand({
  name: "run",
  description: "Submit a run file and follow the run; starts a stack if none is up",
  args: {
    file: { type: "positional", required: true, description: "Run file, YAML or JSON", valueHint: "FILE" },
    keep: {
      type: "boolean",
      description: "Keep the stack that this command started, and its page, up until Ctrl-C",
    },
    ...inProcessArgs,
  },
  run: (session, args) =>
    runOnStack(session, {
      file: resolve(userFolder(), args.file),
      isKept: args.keep === true,
      isInProcess: openInProcess(session.terminal, args),
    }),
});
