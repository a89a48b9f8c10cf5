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
 * T5: a bus that lost its data gives the ids of runs again. The time of a run's acceptance tells such runs apart: the second run of
 *     an id has the folder `<run>.2`, and steps belong to the last one.
 */

import { constants } from "node:fs";
import { access, type FileHandle, mkdir, open } from "node:fs/promises";
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
  /** Times of the events that it holds, by {@link identityOf}. */
  readonly held: Map<string, number>;
}

/** @param folder where TensorBoard's --logdir points to; it is created. */
export function tensorboardSink(folder: string): EventSink {
  /** By the folders of runs. */
  const known = new Map<string, Known>();

  /** Writes the events that a file lacks. @returns false, and writes nothing, if it is the file of an earlier run (T5). */
  const append = async (place: string, fact: RunFact, events: readonly PendingEvent[]): Promise<boolean> => {
    await mkdir(place, { recursive: true });
    const file = await open(path.join(place, FILE), constants.O_RDWR | constants.O_CREAT, 0o644);
    try {
      const { end, held, size } = await refresh(file, known.get(place));
      if (fact.kind === "accepted" && held.size > 0 && held.get(RUN_FILE_TAG) !== fact.timeMs) return false;
      const missing = events.filter(({ identity }) => !held.has(identity));
      const bodies = missing.map(({ event }) => event);
      const first = end === 0 && bodies.length > 0 ? [fileHeader(fact.timeMs)] : [];
      const records = Buffer.concat([...first, ...bodies].map(recordOf));
      if (records.length > 0) {
        await file.write(records, 0, records.length, end); // T2
        if (size > end + records.length) await file.truncate(end + records.length); // it was damaged behind `end`
        await file.datasync(); // T4
        for (const { identity } of missing) held.set(identity, fact.timeMs);
      }
      remember(known, place, { end: end + records.length, held });
      return true;
    } finally {
      await file.close();
    }
  };

  return {
    write: async (facts) => {
      for (const fact of facts) {
        const events = eventsOf(fact);
        if (events.length === 0) continue;
        const places = await placesOf(path.join(folder, fact.runId));
        // The last one that is there; before the first event, the only one.
        const last = places.slice(-2, -1);
        const candidates = fact.kind === "accepted" || last.length === 0 ? places : last;
        for (const place of candidates) {
          if (await append(place, fact, events)) break;
        }
      }
    },
  };
}

/** The folders of the runs that had an id, and behind them the one that the next would get. */
async function placesOf(first: string): Promise<string[]> {
  const places = [first];
  while (await isThere(places.at(-1) ?? first)) places.push(`${first}.${places.length + 1}`);
  return places;
}

async function isThere(place: string): Promise<boolean> {
  try {
    await access(path.join(place, FILE));
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

function remember(known: Map<string, Known>, place: string, now: Known): void {
  known.delete(place);
  known.set(place, now);
  for (const oldest of known.keys()) {
    if (known.size <= MAX_KNOWN_RUNS) return;
    known.delete(oldest);
  }
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
    before === undefined || size < before.end ? { end: 0, held: new Map<string, number>() } : before;
  const end = await readRecords(file, from, (key) => {
    if (key.tag !== "") held.set(identityOf(key), key.timeMs);
  });
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
