/** Answers `hone.v1.run.{cancel,pause,resume,status}.<run>`. Any trainer may: wishes go through the database. */

import { create } from "@bufbuild/protobuf";
import { describeError, unreachable } from "@hone/core";
import { type Bus, lastKeyOf, type Responder, RunControl, respond, subjects } from "@hone/messaging";
import { type ControlReply, ControlReplySchema, ControlRequestSchema } from "@hone/proto-gen/run";
import type { Logger } from "@hone/telemetry";
import type { RunRegistry } from "../domain/ports.ts";
import { RunFolders } from "../domain/run-folders.ts";
import { type RunRecord, RunStage } from "../domain/run-record.ts";
import { RunPhase } from "../domain/run-status.ts";
import { statusOf } from "../domain/run-tenure.ts";
import { WaitOwner } from "../domain/wait.ts";
import { encodeStatus, type RunStateBucket } from "./run-state-board.ts";

const QUEUE = "trainer";

export interface RunControlDeps {
  readonly registry: RunRegistry;
  readonly board: RunStateBucket;
  readonly stateRoot: string;
  /** Told of a wish, for the run that may be held here. */
  readonly onWish: (run: RunRecord) => void;
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
        error: `Cannot ${verb} a run as it must be known: current value is "${runId}"`,
      });
    }
    switch (verb) {
      case RunControl.status:
        return await stateOf(run, deps);
      case RunControl.cancel:
      case RunControl.pause:
      case RunControl.resume:
        return await note(verb, run, deps);
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
  const changed = await deps.registry.wish(run.runId, verb);
  if (changed === undefined) {
    const error = `Cannot ${verb} ${run.runId} as it must be unfinished: current value is ${run.stage}`;
    return create(ControlReplySchema, { error });
  }
  deps.onWish(changed);
  return stateOf(changed, deps);
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
