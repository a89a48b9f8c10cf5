/** Publishes the events of runs. */

import { create } from "@bufbuild/protobuf";
import { unreachable } from "@hone/core";
import { type Bus, EventKind, publishStored, subjects } from "@hone/messaging";
import {
  ProblemSchema,
  RunEvent_AcceptedSchema,
  RunEvent_EndedSchema,
  RunEvent_EvaluatedSchema,
  RunEvent_PhaseChangedSchema,
  RunEvent_RefusedSchema,
  RunEvent_ResumedSchema,
  RunEvent_StepCompletedSchema,
  RunEvent_StepProgressSchema,
  RunEvent_WarmStartProgressSchema,
  RunEventSchema,
  type RunEvent as WireEvent,
} from "@hone/proto-gen/run";
import type { Problem, RunEvent, RunEvents } from "../domain/report/run-event.ts";
import { phaseToWire } from "./run-state-board.ts";
import { troublesToWire } from "./troubles-to-wire.ts";

export class EventPublisher implements RunEvents {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async publish(runId: string, event: RunEvent, messageId?: string): Promise<void> {
    const message = create(RunEventSchema, { runId, timeMs: BigInt(Date.now()), kind: encodeKind(event) });
    await publishStored(
      this.#bus,
      subjects.event(runId, EventKind[kindName(event)]),
      RunEventSchema,
      message,
      {
        ...(messageId === undefined ? {} : { messageId: `${runId}/${messageId}` }),
      },
    );
  }

  /** Publishes why a request was refused. */
  async refused(requestSequence: number, problems: readonly Problem[]): Promise<void> {
    const message = create(RunEventSchema, {
      timeMs: BigInt(Date.now()),
      kind: {
        case: "refused",
        value: create(RunEvent_RefusedSchema, {
          requestSequence: BigInt(requestSequence),
          problems: problems.map((problem) => create(ProblemSchema, problem)),
        }),
      },
    });
    await publishStored(this.#bus, subjects.requestRefused(requestSequence), RunEventSchema, message, {
      messageId: `request-${requestSequence}/refused`,
    });
  }
}

function kindName(event: RunEvent): keyof typeof EventKind {
  return event.kind === "warm-start" ? "warmStart" : event.kind;
}

/** The metrics and troubles of an event in the form of the message. */
function figuresOf<E extends Extract<RunEvent, { kind: "step" | "evaluated" }>>({
  metrics,
  troubles,
  ...event
}: E) {
  return {
    ...event,
    metrics: { ...metrics },
    ...(troubles !== undefined && { troubles: troublesToWire(troubles) }),
  };
}

function encodeKind(event: RunEvent): WireEvent["kind"] {
  switch (event.kind) {
    case "accepted":
      return {
        case: "accepted",
        value: create(RunEvent_AcceptedSchema, {
          requestSequence: BigInt(event.requestSequence),
          configJson: event.configJson,
        }),
      };
    case "phase":
      return {
        case: "phaseChanged",
        value: create(RunEvent_PhaseChangedSchema, {
          phase: phaseToWire(event.phase),
          step: event.step,
          waitingFor: event.waitingFor,
        }),
      };
    case "progress":
      return { case: "stepProgress", value: create(RunEvent_StepProgressSchema, { ...event }) };
    case "warm-start":
      return { case: "warmStartProgress", value: create(RunEvent_WarmStartProgressSchema, { ...event }) };
    case "step":
      return {
        case: "stepCompleted",
        value: create(RunEvent_StepCompletedSchema, figuresOf(event)),
      };
    case "evaluated":
      return {
        case: "evaluated",
        value: create(RunEvent_EvaluatedSchema, figuresOf(event)),
      };
    case "ended":
      return {
        case: "ended",
        value: create(RunEvent_EndedSchema, {
          phase: phaseToWire(event.phase),
          reason: event.reason,
          checkpoint: event.checkpoint,
          resumption: event.resumption,
        }),
      };
    case "resumed":
      return {
        case: "resumed",
        value: create(RunEvent_ResumedSchema, { resumption: event.resumption }),
      };
    default:
      return unreachable(event);
  }
}
