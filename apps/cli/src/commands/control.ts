/** `hone cancel`, `hone pause`, `hone resume`: requests to the trainer that holds a run. */

import { create } from "@bufbuild/protobuf";
import { RunControl, request, subjects } from "@hone/messaging";
import { ControlReplySchema, ControlRequestSchema } from "@hone/proto-gen/run";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";

const ANSWER_TIMEOUT_MS = 5_000;

export const cancelCommand = controlCommand(
  RunControl.cancel,
  "End a run before its last step; it cannot be resumed",
);
export const pauseCommand = controlCommand(RunControl.pause, "Pause a run after the current step");
export const resumeCommand = controlCommand(
  RunControl.resume,
  "Continue a paused run, or a failed one once its cause is fixed",
);

function controlCommand(verb: RunControl, description: string) {
  return honeCommand({
    name: verb,
    description,
    args: {
      run: {
        type: "positional",
        required: true,
        description: "Id of the run, as hone status shows it",
        valueHint: "RUN",
      },
    },
    run: async (session, args) => {
      const bus = await connectTo(requireStack(session), verb, session.signal);
      try {
        const reply = await request(
          bus,
          subjects.runControl(verb, args.run),
          ControlRequestSchema,
          create(ControlRequestSchema, { runId: args.run }),
          ControlReplySchema,
          { timeoutMs: ANSWER_TIMEOUT_MS },
        );
        if (reply.error !== "") throw new UsageError(reply.error);
        session.terminal.line(`${verb} requested for ${args.run}`);
        return 0;
      } finally {
        await bus.close();
      }
    },
  });
}
