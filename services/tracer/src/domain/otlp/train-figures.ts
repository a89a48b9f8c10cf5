/** Reads the training figures of a rollout from its `train` span. */

import { fromBinary } from "@bufbuild/protobuf";
import { InvalidInputError, parseSlotKey, type Slot } from "@hone/core";
import { SpanSchema } from "@hone/otlp-proto";
import { Attr } from "@hone/telemetry";
import { plainValue } from "./plain-value.ts";

/** Training figures of one rollout. */
export interface TrainFigures {
  readonly runId: string;
  readonly slot: Slot;
  /** Advantage of each of its sampled tokens. */
  readonly advantage: number;
  /** The span's other numbers by attribute name, such as `hone.ratio.max`. */
  readonly figures: Readonly<Record<string, number>>;
}

/** @returns undefined for a span without a rollout or an advantage, as other systems may have `train` spans too. */
export function trainFiguresOf(span: Uint8Array): TrainFigures | undefined {
  let attributes: ReadonlyMap<string, unknown>;
  try {
    attributes = new Map(
      fromBinary(SpanSchema, span).attributes.map(({ key, value }) => [key, plainValue(value)]),
    );
  } catch {
    // The intake does not check the content of a span; this one cannot be decoded.
    return undefined;
  }
  const rolloutId = attributes.get(Attr.rolloutId);
  const advantage = attributes.get(Attr.advantage);
  if (typeof rolloutId !== "string" || typeof advantage !== "number" || !Number.isFinite(advantage))
    return undefined;
  const identity = parseRolloutId(rolloutId);
  if (identity === undefined) return undefined;
  const figures: Record<string, number> = {};
  for (const [key, value] of attributes) {
    if (!key.startsWith("hone.") || key === Attr.advantage) continue;
    // A list, such as the advantages of turns, becomes one figure each: `hone.turn.advantages.0` and so on.
    const entries: [string, unknown][] = Array.isArray(value)
      ? value.map((each, i) => [`${key}.${i}`, each])
      : [[key, value]];
    for (const [name, figure] of entries) {
      if (typeof figure === "number" && Number.isFinite(figure)) figures[name] = figure;
    }
  }
  return { ...identity, advantage, figures };
}

/** `<run id>/<slot>` */
function parseRolloutId(id: string): { runId: string; slot: Slot } | undefined {
  const at = id.indexOf("/");
  if (at < 1) return undefined;
  try {
    return { runId: id.slice(0, at), slot: parseSlotKey(id.slice(at + 1)) };
  } catch (error) {
    if (error instanceof InvalidInputError) return undefined;
    throw error;
  }
}
