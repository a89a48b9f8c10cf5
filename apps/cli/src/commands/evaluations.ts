/** `hone evaluations [RUN]`: shows how a run's policy did on tasks that it was never trained on, version by version. */

import { type Bus, followOrdered, StreamName, subjects } from "@hone/messaging";
import { RunEventSchema } from "@hone/proto-gen/run";
import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { evaluationTable } from "../run/evaluation-table.ts";
import { runStates } from "../run/follow-run.ts";
import { afterEvent, newRunView, type RunView } from "../run/run-view.ts";
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

/** A run's id ends with the number of its request, so the newest run has the highest number. */
async function newestRun(bus: Bus): Promise<string> {
  const sequenceOf = (runId: string) => Number(runId.split("-").at(-1));
  const states = await runStates(bus);
  const newest = states.map(({ runId }) => runId).sort((a, b) => sequenceOf(b) - sequenceOf(a))[0];
  if (newest === undefined) throw new UsageError("there are no runs in this stack");
  return newest;
}

/** Reads a run's stored events, without waiting for more. */
async function readRun(bus: Bus, runId: string, signal: AbortSignal): Promise<RunView> {
  let view = newRunView(runId);
  const filter = subjects.event(runId, "*");
  const { state } = await bus.manager.streams.info(StreamName.events, { subjects_filter: filter });
  let remaining = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
  if (remaining === 0) return view;
  const done = new AbortController();
  const reading = { stream: StreamName.events, filter, signal: AbortSignal.any([signal, done.signal]) };
  for await (const { message } of followOrdered(bus, RunEventSchema, reading)) {
    view = afterEvent(view, message);
    remaining--;
    if (remaining === 0) break;
  }
  done.abort();
  signal.throwIfAborted();
  return view;
}
