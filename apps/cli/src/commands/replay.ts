/** `hone replay RUN`: trains the rollouts of a run again, from a step on, with the same settings or with others, and compares. */

import { honeCommand } from "../define.ts";
import { UsageError } from "../errors.ts";
import { comparisonLines } from "../replay/compare-runs.ts";
import { firstStep, readChanges, readFrom, replayRun } from "../replay/replay-run.ts";
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
    from: {
      type: "string",
      description: "First step that is trained, in a run with trainer.keepStates; from the start by default",
      valueHint: "STEP",
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
    const wanted = args.from === undefined ? undefined : readFrom(args.from);
    const from = wanted && (await firstStep(project.state, args.run, wanted));
    const replay = await replayRun(project.state, args.run, changes, from);
    const { steps } = replay.config.trainer;
    if (wanted !== undefined && wanted > steps) {
      throw new UsageError(`--from ${wanted} is after the last step: trainer.steps is ${steps}`);
    }
    if (from !== wanted) {
      terminal.line(
        `no state of version ${wanted! - 1} is kept, so the replay begins with version ${from! - 1} and trains step ${from} first`,
      );
    }
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
