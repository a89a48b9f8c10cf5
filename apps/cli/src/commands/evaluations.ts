/** `hone evaluations [RUN]`: shows how a run's policy did on tasks that it was never trained on, version by version. */

import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { evaluationTable } from "../run/evaluation-table.ts";
import { newestRun, readRun } from "../run/follow-run.ts";
import { connectTo, requireStack } from "../stack/use-stack.ts";

export const evaluationsCommand = honeCommand({
  name: "evaluations",
  description: "Show a run's evaluations on held-out tasks, version by version",
  args: {
    run: {
      type: "positional",
      required: false,
      description: "Id of the run; the newest one by default",
      valueHint: "RUN",
    },
    json: {
      type: "boolean",
      description: "Print the figures of every step and evaluation as JSON",
    },
  },
  run: async (session, args) => {
    const bus = await connectTo(requireStack(session), "evaluations", session.signal);
    try {
      const runId = args.run ?? (await newestRun(bus));
      const view = await readRun(bus, runId, session.signal);
      if (args.json === true) {
        const { steps, evaluations } = view;
        session.terminal.line(JSON.stringify({ runId, steps, evaluations }));
        return 0;
      }
      if (view.evaluations.length === 0) {
        throw new UsageError(`run ${runId} has no evaluations yet`);
      }
      session.terminal.line(session.terminal.style("bold", runId));
      for (const line of evaluationTable(view.evaluations)) session.terminal.line(line);
      return 0;
    } finally {
      await bus.close();
    }
  },
});
