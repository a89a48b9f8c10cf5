/**
 * Writes the figures of runs to TensorBoard's event files: `<folder>/<run>/events.out.tfevents.hone`.
 *
 * T1: the file is the sink's only memory. What it holds already is not written again, so an event that comes twice, also after
 *     a kill, makes one point.
 * T2: the same events make the same bytes. A record that a kill left unfinished is written again in its place; readers that had
 *     read its beginning go on, and a second process that writes the same record changes nothing.
 * T3: steps are written in their order, since TensorBoard drops the points after a step that goes back. The sink gets its events
 *     in the order of the stream, one at a time (durables.ts).
 * T4: an event is acknowledged after the disk has it.
 */

import { constants } from "node:fs";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import path from "node:path";
import type { EventSink } from "../../domain/event-sink.ts";
import type { RunFact } from "../../domain/run-event.ts";
import { flatConfig } from "../flat-config.ts";
import { type MetricPoints, pointsOf, TRAIN_SERIES } from "../metric-points.ts";
import {
  type EventKey,
  fileHeader,
  HPARAMS_TAG,
  hparamsEvent,
  readRecords,
  recordOf,
  scalarsEvent,
  textEvent,
} from "./event-file.ts";

const FILE = "events.out.tfevents.hone";
const RUN_FILE_TAG = "run_file";
/** Runs whose files are known; the file of another one is read again when an event of it comes. */
const MAX_KNOWN_RUNS = 64;

/** What is known of a run's file. */
interface Known {
  /** Behind its last whole record. */
  readonly end: number;
  /** Events that it holds, by {@link identityOf}. */
  readonly held: Set<string>;
}

/** @param folder where TensorBoard's --logdir points to; it is created. */
export function tensorboardSink(folder: string): EventSink {
  const known = new Map<string, Known>();

  const append = async (runId: string, events: readonly PendingEvent[], timeMs: number): Promise<void> => {
    const place = path.join(folder, runId);
    await mkdir(place, { recursive: true });
    const file = await open(path.join(place, FILE), constants.O_RDWR | constants.O_CREAT, 0o644);
    try {
      const { end, held, size } = await refresh(file, known.get(runId));
      const missing = events.filter(({ identity }) => !held.has(identity));
      const bodies = missing.map(({ event }) => event);
      const first = end === 0 && bodies.length > 0 ? [fileHeader(timeMs)] : [];
      const records = Buffer.concat([...first, ...bodies].map(recordOf));
      if (records.length > 0) {
        await file.write(records, 0, records.length, end); // T2
        if (size > end + records.length) await file.truncate(end + records.length); // it was damaged behind `end`
        await file.datasync(); // T4
        for (const { identity } of missing) held.add(identity);
      }
      known.delete(runId);
      known.set(runId, { end: end + records.length, held });
      for (const oldest of known.keys()) {
        if (known.size <= MAX_KNOWN_RUNS) break;
        known.delete(oldest);
      }
    } finally {
      await file.close();
    }
  };

  return {
    write: async (facts) => {
      for (const fact of facts) {
        const events = eventsOf(fact);
        if (events.length > 0) await append(fact.runId, events, fact.timeMs);
      }
    },
  };
}

interface PendingEvent {
  readonly identity: string;
  readonly event: Uint8Array;
}

/** Reads what the file got since it was last looked at: another replica may have written to it, or somebody removed it (T1). */
async function refresh(
  file: FileHandle,
  before: Known | undefined,
): Promise<Known & { readonly size: number }> {
  const { size } = await file.stat();
  const { end: from, held } =
    before === undefined || size < before.end ? { end: 0, held: new Set<string>() } : before;
  const end = await readRecords(file, from, (key) => held.add(identityOf(key)));
  return { end, held, size };
}

/** A series has one event for each step, and a text one for each run. */
function identityOf({ step, tag }: EventKey): string {
  if (tag === RUN_FILE_TAG || tag === HPARAMS_TAG) return tag;
  const parts = tag.split("/");
  return `${parts[0] === "val" ? `val/${parts[1]}` : TRAIN_SERIES} ${step}`;
}

function eventsOf(fact: RunFact): PendingEvent[] {
  if (fact.kind === "accepted") return textsOf(fact.configJson, fact.timeMs);
  const points = pointsOf(fact);
  if (points === undefined || points.values.length === 0) return [];
  return [
    { identity: identityOfPoints(points), event: scalarsEvent(fact.timeMs, points.step, points.values) },
  ];
}

function identityOfPoints({ series, step }: MetricPoints): string {
  return `${series} ${step}`;
}

function textsOf(configJson: string, timeMs: number): PendingEvent[] {
  const values = flatConfig(configJson);
  const rows = values.map(([name, value]) => `| ${cell(name)} | ${cell(String(value))} |`);
  const markdown = ["| key | value |", "|---|---|", ...rows].join("\n");
  return [
    { identity: RUN_FILE_TAG, event: textEvent(timeMs, RUN_FILE_TAG, markdown) },
    { identity: HPARAMS_TAG, event: hparamsEvent(timeMs, values) },
  ];
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ");
}
