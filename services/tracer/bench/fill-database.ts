/**
 * Fills a database with a run of many rollouts, by the functions with which the tracer stores them: episodes of the first example
 * and of an agent with tools, with their words, training figures and steps. The same each time.
 */

import { create, toBinary } from "@bufbuild/protobuf";
import { Random, type Slot } from "@hone/core";
import { outcomeFromWire, slotToWire } from "@hone/messaging";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import type { Database } from "@hone/storage";
import type { Tokenizer } from "@hone/tokenizer";
import { writeRollouts, writeTrainings } from "../src/db/rollouts/write-rollouts.ts";
import { writeEvents } from "../src/db/write-events.ts";
import type { StoredRollout } from "../src/domain/ports.ts";
import { rolloutRecordOf } from "../src/domain/rollout-record.ts";
import { chatEpisode } from "../src/testing/chat-episode.ts";
import { sampleEpisode } from "../src/testing/sample-episode.ts";
import { sampleMetrics } from "../src/testing/sample-run.ts";

export interface FilledRun {
  readonly runId: string;
  readonly rollouts: number;
}

const TASKS_PER_STEP = 32;
const GROUP_SIZE = 8;
/** Tasks come again, as those of a dataset do in another epoch. */
const TASKS = 2_000;
/** Different episodes; the rollouts share them, with other slots and another word each. */
const TEMPLATES = 400;
const BATCH = 256;

/** Writes the run. Its rollouts are those of whole steps, the newest last. */
export async function fillRun(
  database: Database,
  { runId, rollouts }: FilledRun,
  tokenizer: Tokenizer,
): Promise<void> {
  const perStep = TASKS_PER_STEP * GROUP_SIZE;
  const steps = Math.ceil(rollouts / perStep);
  const random = new Random(7);
  const templates = Array.from({ length: TEMPLATES }, (_, index) =>
    index % 4 === 0
      ? chatEpisode(runId, { split: "train", step: 1, task: 0, index })
      : sampleEpisode(runId, { split: "train", step: index, task: index % 32, index: index % 8 }, tokenizer),
  );
  await writeRun(database, runId, steps);
  for (let from = 0; from < rollouts; from += BATCH) {
    const items = Array.from({ length: Math.min(BATCH, rollouts - from) }, (_, offset) => {
      const place = from + offset;
      const slot: Slot = {
        split: "train",
        step: 1 + Math.floor(place / perStep),
        task: Math.floor(place / GROUP_SIZE) % TASKS_PER_STEP,
        index: place % GROUP_SIZE,
      };
      const taskId = `task:${Math.floor(place / GROUP_SIZE) % TASKS}`;
      return storedOf(runId, slot, taskId, random.pick(templates), random, place);
    });
    await writeRollouts(database, items);
    await writeTrainings(
      database,
      items.map(({ record }) => ({
        runId,
        slot: record.slot,
        advantage: random.next() * 4 - 2,
        figures: { "hone.ratio.max": 1 + random.next() },
      })),
    );
  }
}

function storedOf(
  runId: string,
  slot: Slot,
  taskId: string,
  template: ScoredEpisode,
  random: Random,
  place: number,
): StoredRollout {
  const reward = random.nextInt(11) / 10;
  const { episode } = template;
  if (episode === undefined) throw new TypeError("a template without an episode");
  const scores = template.scores.map((score) => ({
    ...score,
    reason: place % 50 === 0 ? `polite, and number ${place} of those asked` : "",
  }));
  const made = {
    ...episode,
    runId,
    slot: slotToWire(slot),
    durationMs: 200 + random.next() * 4_000,
    ...(episode.task !== undefined && { task: { ...episode.task, id: taskId } }),
  };
  const scored = create(ScoredEpisodeSchema, { reward, scores, episode: made });
  const outcome = outcomeFromWire(episode.outcome);
  return {
    record: rolloutRecordOf(scored, scored.episode ?? made, { slot, outcome }),
    traceId: "",
    scored: toBinary(ScoredEpisodeSchema, scored),
  };
}

async function writeRun(database: Database, runId: string, steps: number): Promise<void> {
  const timeMs = Date.now() - steps * 2_000;
  const config = JSON.stringify({ name: runId, seed: 7, trainer: { steps, maxStaleness: runId.length % 3 } });
  const completed = Array.from({ length: steps }, (_, index) => ({
    kind: "step_completed" as const,
    runId,
    sequence: index + 2,
    timeMs: timeMs + index * 2_000,
    step: index + 1,
    totalSteps: steps,
    version: index + 1,
    metrics: Object.fromEntries(
      Object.entries(sampleMetrics(index + 1)).map(([name, value]) => [
        name,
        Number.isFinite(value) ? value : null,
      ]),
    ),
  }));
  await writeEvents(database, [
    { kind: "accepted", runId, sequence: 1, timeMs, configJson: config },
    ...completed,
  ]);
}
