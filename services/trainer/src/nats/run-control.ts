/** Answers `hone.v1.run.{cancel,pause,resume,status}.<run>`. Any trainer may answer: requests go through the database. */

import { create } from "@bufbuild/protobuf";
import { delay, describeError, unreachable } from "@hone/core";
import { type Bus, lastKeyOf, type Responder, RunControl, respond, subjects } from "@hone/messaging";
import {
  type ControlReply,
  ControlReplySchema,
  ControlRequestSchema,
  RunPhase as WirePhase,
} from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import { RunPhase } from "../domain/report/run-status.ts";
import { statusOf } from "../domain/report/status-of.ts";
import { WaitOwner } from "../domain/report/wait.ts";
import { type RunRecord, RunStage } from "../domain/run/run-record.ts";
import type { RunRegistry } from "../domain/run/run-registry.ts";
import { RunFolders } from "../domain/state/run-folders.ts";
import { encodeStatus, type RunStateBucket } from "./run-state-board.ts";

const QUEUE = "trainer";
/** A run's end is published one statement before its row records it; the client waits five seconds for an answer. */
const END_PATIENCE_MS = 3_000;
const END_LOOK_MS = 50;

export interface RunControlDeps {
  readonly registry: RunRegistry;
  readonly board: RunStateBucket;
  readonly stateRoot: string;
  /** Called with a run of which something was asked, and which this process may hold. */
  readonly onControl: (run: RunRecord) => void;
  /** Called with a failed run that was resumed and may be claimed. */
  readonly onResumed: (run: RunRecord) => void;
  readonly logger: Logger;
}

/** Starts to answer. */
export function respondToControl(bus: Bus, deps: RunControlDeps): Responder[] {
  return Object.values(RunControl).map((verb) =>
    respond(bus, subjects.runControl(verb, "*"), ControlRequestSchema, ControlReplySchema, {
      queue: QUEUE,
      handle: async ({ subject, reply }) => {
        await reply(await answer(verb, lastKeyOf(subject), deps));
      },
      onError: (error, subject) => deps.logger.error("a control request failed", { subject, error }),
    }),
  );
}

async function answer(verb: RunControl, runId: string, deps: RunControlDeps): Promise<ControlReply> {
  try {
    const run = await deps.registry.load(runId);
    if (run === undefined) {
      return create(ControlReplySchema, {
        error: `there is no run "${runId}" to ${verb}; hone status lists the runs`,
      });
    }
    switch (verb) {
      case RunControl.status:
        return await stateOf(run, deps);
      case RunControl.cancel:
      case RunControl.pause:
        return await note(verb, run, deps);
      case RunControl.resume:
        return await resume(await untilEndRecorded(run, deps), deps);
      default:
        return unreachable(verb);
    }
  } catch (error) {
    return create(ControlReplySchema, { error: describeError(error) });
  }
}

async function note(
  verb: "cancel" | "pause" | "resume",
  run: RunRecord,
  deps: RunControlDeps,
): Promise<ControlReply> {
  const changed = await deps.registry.requestControl(run.runId, verb);
  if (changed === undefined) {
    const { stage } = (await deps.registry.load(run.runId)) ?? run;
    const error = `Run ${run.runId} is over (${stage}), and only ${verb === "resume" ? "a paused or a failed run can be resumed; send its file again to begin anew" : `an unfinished run can be asked to ${verb}`}`;
    return create(ControlReplySchema, { error });
  }
  deps.onControl(changed);
  return stateOf(changed, deps);
}

/** Waits, where a run's failure was published already, until its row records the failure, too, and returns the row. */
async function untilEndRecorded(run: RunRecord, { registry, board }: RunControlDeps): Promise<RunRecord> {
  const giveUpAt = performance.now() + END_PATIENCE_MS;
  let current = run;
  while (current.stage === RunStage.active && performance.now() < giveUpAt) {
    const published = await board.read(run.runId);
    if (published?.phase !== WirePhase.FAILED) break;
    await delay(END_LOOK_MS);
    current = (await registry.load(run.runId)) ?? current;
  }
  return current;
}

/** Resumes a failed run. Its state is published at once, so that it does not look failed until a trainer claims it. */
async function resume(known: RunRecord, deps: RunControlDeps): Promise<ControlReply> {
  const { runId, stage } = known;
  if (stage !== RunStage.failed) return note(RunControl.resume, known, deps);
  const resumed = await deps.registry.resume(runId);
  switch (resumed?.kind) {
    case "resumed": {
      const { run } = resumed;
      const waiting = {
        waitingFor: "a trainer to take it",
        waitingOwner: WaitOwner.trainer,
        waitingSinceMs: Date.now(),
      };
      await deps.board.publish({ ...statusOf(run, new RunFolders(deps.stateRoot, runId)), ...waiting });
      deps.onResumed(run);
      return stateOf(run, deps);
    }
    case "name_taken":
      return create(ControlReplySchema, {
        error: `Run ${runId} cannot be resumed while ${resumed.runId}, of the same name, is unfinished: wait for its end or cancel it`,
      });
    default: {
      const now = resumed?.stage ?? "gone";
      return create(ControlReplySchema, { error: `Run ${runId} is ${now} by now and was not resumed` });
    }
  }
}

/** The published state, or what the row says where none is published yet. */
async function stateOf(run: RunRecord, { board, stateRoot }: RunControlDeps): Promise<ControlReply> {
  const published = await board.read(run.runId);
  if (published !== undefined) return create(ControlReplySchema, { state: published });
  const status = statusOf(run, new RunFolders(stateRoot, run.runId));
  return create(ControlReplySchema, {
    state: encodeStatus({
      ...status,
      phase: phaseOf(run.stage),
      ...(run.stage === RunStage.admitting && {
        waitingFor: "a trainer to take it",
        waitingOwner: WaitOwner.trainer,
      }),
    }),
  });
}

function phaseOf(stage: RunStage): RunPhase {
  switch (stage) {
    case RunStage.admitting:
    case RunStage.active:
      return RunPhase.waiting;
    default:
      return stage;
  }
}
