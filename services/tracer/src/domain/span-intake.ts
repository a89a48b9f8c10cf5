/**
 * Accepts exports of spans without ever making their sender wait for the database.
 *
 * I1: at most MAX_WAITING_PIECES pieces wait to be written; further spans are dropped and counted.
 * I2: spans are only shown and nothing depends on them, so those that the database refuses, or that are lost with the
 *     process, are not requested again.
 */

import { describeError } from "@hone/core";
import type { Logger } from "@hone/telemetry";
import { SpanName } from "@hone/telemetry";
import type { BatchWriter } from "./batch-writer.ts";
import { splitByTrace, type TracePiece } from "./otlp/split-by-trace.ts";
import { type TrainFigures, trainFiguresOf } from "./otlp/train-figures.ts";

/** With 8 spans and 3 kB in a piece, these are 160,000 spans and 60 MB. */
const MAX_WAITING_PIECES = 20_000;
/** Without this pause a database that does not answer would fill the log. */
const REPORT_INTERVAL_MS = 30_000;

/** How many spans of one export were accepted. */
export interface TakenSpans {
  readonly accepted: number;
  readonly rejected: number;
  /** Why some were rejected; empty when none was. */
  readonly reason: string;
}

/** Numbers of spans since the start. */
export interface IntakeCounts {
  readonly accepted: number;
  readonly invalid: number;
  readonly dropped: number;
}

export class SpanIntake {
  readonly #pieces: BatchWriter<TracePiece>;
  readonly #trainings: BatchWriter<TrainFigures>;
  readonly #logger: Logger;
  #accepted = 0;
  #invalid = 0;
  #dropped = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(pieces: BatchWriter<TracePiece>, trainings: BatchWriter<TrainFigures>, logger: Logger) {
    this.#pieces = pieces;
    this.#trainings = trainings;
    this.#logger = logger;
  }

  get counts(): IntakeCounts {
    return { accepted: this.#accepted, invalid: this.#invalid, dropped: this.#dropped };
  }

  /** @param body an encoded ExportTraceServiceRequest. @throws {BadBodyError} when it is something else. */
  take(body: Uint8Array): TakenSpans {
    const { pieces, picked, spanCount, invalidCount } = splitByTrace(body, SpanName.train);
    this.#invalid += invalidCount;
    const isFull = this.#pieces.waiting + pieces.length > MAX_WAITING_PIECES; // I1
    if (isFull) {
      this.#drop(spanCount, "spans come faster than the database stores them");
    } else {
      this.#accepted += spanCount;
      for (const piece of pieces) {
        // `data` is a copy, so a waiting piece does not keep the memory of the whole body.
        this.#pieces.add(piece).catch((error: unknown) => this.#drop(piece.spanCount, describeError(error))); // I2
      }
      for (const span of picked) this.#takeTraining(span);
    }
    const rejected = invalidCount + (isFull ? spanCount : 0);
    const reason = isFull
      ? "the queue of spans is full at the moment"
      : invalidCount > 0
        ? "spans need a trace id and a span id"
        : "";
    return { accepted: isFull ? 0 : spanCount, rejected, reason };
  }

  #takeTraining(span: Uint8Array): void {
    const figures = trainFiguresOf(span);
    if (figures === undefined || this.#trainings.waiting > MAX_WAITING_PIECES) return;
    this.#trainings
      .add(figures)
      .catch((error: unknown) =>
        this.#report("training figures of a rollout could not be stored", describeError(error)),
      );
  }

  #drop(spans: number, reason: string): void {
    this.#dropped += spans;
    this.#report("spans were dropped", reason);
  }

  #report(message: string, reason: string): void {
    const now = performance.now();
    if (now - this.#reportedAt < REPORT_INTERVAL_MS) return;
    this.#reportedAt = now;
    this.#logger.warn(message, { reason, droppedSoFar: this.#dropped });
  }
}
