/** `hone replay RUN`: trains the rollouts of a run again, with the same settings or with others, and compares. */

import { honeCommand } from "../define.ts";
import { comparisonLines } from "../replay/compare-runs.ts";
import { readChanges, replayRun } from "../replay/replay-run.ts";
import { readRun, runStates } from "../run/follow-run.ts";
import { followOnStack } from "../run/run-on-stack.ts";

export const replayCommand = honeCommand({
  name: "replay",
  description: "Train the kept rollouts of a run again, with the same or other settings, and compare both",
  args: {
    run: {
      type: "positional",
      required: true,
      description: "Id of a run with trainer.keepRollouts: true",
      valueHint: "RUN",
    },
    set: {
      type: "string",
      description: "Settings that differ, such as algorithm.loss.kind=gspo,trainer.epochs=2",
      valueHint: "KEY=VALUE,…",
    },
  },
  run: async (session, args) => {
    const { terminal, project, signal } = session;
    const changes = args.set === undefined ? [] : readChanges(args.set);
    const replay = await replayRun(project.state, args.run, changes);
    await followOnStack(session, replay, {
      file: args.run,
      isKept: false,
      onEnded: async ({ view }, bus) => {
        if (view.steps.length === 0) return;
        const recorded = await readRun(bus, args.run, signal);
        terminal.line();
        for (const line of comparisonLines(recorded, view, await runStates(bus))) terminal.line(line);
      },
    });
    return 0;
  },
});
