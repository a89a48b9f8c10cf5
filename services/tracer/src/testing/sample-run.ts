/**
 * A sample run for tests of this service and for looking at the page. Its events, state, scored episodes and spans are
 * published as the other services would publish them, over a real bus and a real intake. It is the same run each time.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Random, rolloutIdOf, type Slot } from "@hone/core";
import { BucketName, type Bus, EventKind, openBucket, publishStored, subjects } from "@hone/messaging";
import { Outcome, type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import { RunEventSchema, RunPhase, RunStateSchema } from "@hone/proto-gen/run";
import { contextOfTraceparent } from "@hone/telemetry";
import type { Tokenizer } from "@hone/tokenizer";
import { sampleEpisode } from "./sample-episode.ts";
import { encodeTrace, spanIdOf, traceIdOf } from "./sample-spans.ts";

type EventInit = NonNullable<MessageInitShape<typeof RunEventSchema>["kind"]>;

export interface SampleRun {
  readonly runId: string;
  readonly steps: number;
  /** Number of train steps, counted back from the last one, whose rollouts are published too. */
  readonly stepsWithRollouts: number;
  readonly tokenizer: Tokenizer;
  readonly startedAtMs: number;
}

const GROUPS = 4;
const GROUP_SIZE = 8;
/** The task whose rollouts have an advantage for each turn. */
const TASK_WITH_TURNS = 2;
const STEP_MS = 2_400;

/** Publishes the whole run. @param otlpUrl base address of the tracer, or undefined to send no spans. */
export async function publishSampleRun(bus: Bus, run: SampleRun, otlpUrl: string | undefined): Promise<void> {
  await publishEvents(bus, run);
  await publishState(bus, run, RunPhase.ROLLOUT);
  for (let step = run.steps - run.stepsWithRollouts + 1; step <= run.steps; step++) {
    for (let task = 0; task < GROUPS; task++) await publishGroup(bus, run, step, task, otlpUrl);
  }
}

/** Publishes the state of a run as its trainer would. */
export async function publishState(bus: Bus, run: SampleRun, phase: RunPhase): Promise<void> {
  const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
  const isWaiting = phase === RunPhase.ROLLOUT;
  await bucket.put(
    run.runId,
    create(RunStateSchema, {
      runId: run.runId,
      phase,
      version: run.steps,
      totalSteps: 60,
      waitingFor: isWaiting ? "rollouts of step 41: 160 of 256 are there" : "",
      waitingOwner: isWaiting ? "agent-rollout" : "",
      waitingSinceMs: isWaiting ? BigInt(run.startedAtMs + run.steps * STEP_MS) : 0n,
    }),
  );
}

/** Publishes one event of a run. */
export async function publishEvent(bus: Bus, runId: string, timeMs: number, kind: EventInit): Promise<void> {
  const event = create(RunEventSchema, { runId, timeMs: BigInt(timeMs), kind });
  const subject =
    event.kind.case === "refused"
      ? subjects.requestRefused(Number(event.kind.value.requestSequence))
      : subjects.event(runId, EventKind.progress);
  await publishStored(bus, subject, RunEventSchema, event);
}

/** Metrics of one step of the sample run. */
export function sampleMetrics(step: number): Record<string, number> {
  const random = new Random(step);
  const success = 0.86 - 0.62 * Math.exp(-step / 14) + (random.next() - 0.5) * 0.09;
  const oldTokens = step === 1 ? 0 : 1_900 + 40 * (step % 7);
  return {
    "reward/mean": success - 0.02 * random.next(),
    "reward/std": Math.sqrt(Math.max(0.01, success * (1 - success))),
    success,
    episodes: 256,
    "turns/mean": 4.2 + 3.5 * Math.exp(-step / 10) + random.next() * 0.3,
    tokens: 34_000 - 200 * step,
    "tokens/trained": 5_400 - 40 * step,
    loss: -0.02 + random.next() * 0.015,
    grad_norm: 0.8 * Math.exp(-step / 30) + random.next() * 0.2,
    entropy: 0.3 + 1.05 * Math.exp(-step / 12),
    clip_fraction: 0.02 + random.next() * 0.05,
    "ratio/max": 1.3 + random.next(),
    "mismatch/max": 2e-7 + random.next() * 3e-7,
    learning_rate: 0.002,
    "groups/used": 24 - Math.floor(step / 5),
    "groups/flat": 8 + Math.floor(step / 5),
    "actions/invalid": 0.12 * Math.exp(-step / 6),
    "outcome/completed": 250,
    "outcome/truncated": 6,
    "groups/open": 32,
    "groups/too_old": step % 3 === 0 ? 2 : 0,
    "rollouts/waiting": 60 + (step % 5) * 8,
    "staleness/mean": oldTokens / 5_400,
    "staleness/max": step === 1 ? 0 : 1,
    "staleness/0": 5_400 - oldTokens,
    ...(step > 1 && { "staleness/1": oldTokens }),
    "idle/trainer": 0.58,
    "idle/engines": 0.06 + random.next() * 0.04,
    "time/step_ms": 2_300,
    "time/rollout_ms": 1_300 + random.next() * 30,
    "time/train_ms": 800 + random.next() * 40,
    "time/score_ms": 90,
    "time/commit_ms": 40 + random.next() * 20,
    "time/publish_ms": 20 + random.next() * 10,
    tokens_per_second: 14_000 + random.next() * 900,
    episodes_per_second: 105 + random.next() * 9,
    unknown: Number.NaN,
  };
}

async function publishEvents(bus: Bus, run: SampleRun): Promise<void> {
  const at = (step: number) => run.startedAtMs + step * STEP_MS;
  const publish = (timeMs: number, kind: EventInit) => publishEvent(bus, run.runId, timeMs, kind);
  const config = {
    name: "frozen-lake",
    seed: 7,
    model: {
      init: { architecture: "qwen3", hiddenSize: 64, numLayers: 4, tokenizer: `runs/${run.runId}/tokenizer` },
    },
    rollout: { tasksPerStep: 32, groupSize: 8, maxTurns: 10 },
    trainer: { maxStaleness: 1 },
    judge: [{ kind: "environment", weight: 1 }],
  };
  await publish(at(-4), {
    case: "accepted",
    value: { requestSequence: 1n, configJson: JSON.stringify(config) },
  });
  await publish(at(-3), {
    case: "warmStartProgress",
    value: { rolloutsDone: 2_000, rolloutsTotal: 2_000, updatesDone: 12, updatesTotal: 32, loss: 0.9 },
  });
  for (const [mode, success] of [["sampled", 0.21] as const, ["greedy", 0.18] as const]) {
    await publish(at(0), {
      case: "evaluated",
      value: { version: 0, mode, episodes: 1_000, metrics: { success } },
    });
  }
  for (let step = 1; step <= run.steps; step++) {
    await publish(at(step), {
      case: "stepCompleted",
      value: { step, totalSteps: 60, version: step, metrics: sampleMetrics(step) },
    });
    if (step % 20 === 0) {
      const success = 0.85 - 0.62 * Math.exp(-step / 14);
      await publish(at(step), {
        case: "evaluated",
        value: {
          version: step,
          mode: "sampled",
          episodes: 200,
          metrics: { success, "reward/mean": success },
        },
      });
    }
  }
  await publish(at(run.steps) + 900, {
    case: "stepProgress",
    value: { step: run.steps + 1, rolloutsDone: 160, rolloutsTotal: 256 },
  });
}

/** Publishes the rollouts of one task with their traces, which hold their advantages. */
async function publishGroup(
  bus: Bus,
  run: SampleRun,
  step: number,
  task: number,
  otlpUrl: string | undefined,
) {
  const episodes = Array.from({ length: GROUP_SIZE }, (_, index) =>
    sampleEpisode(run.runId, { split: "train", step, task, index }, run.tokenizer),
  );
  const isTrained = ({ episode }: ScoredEpisode) => episode?.outcome === Outcome.COMPLETED;
  const rewards = episodes.filter(isTrained).map(({ reward }) => reward);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const std = Math.sqrt(rewards.reduce((sum, reward) => sum + (reward - mean) ** 2, 0) / rewards.length);
  for (const [index, scored] of episodes.entries()) {
    const slot: Slot = { split: "train", step, task, index };
    const traceparent = `00-${traceIdOf(slot)}-${spanIdOf(slot, 0)}-01`;
    await publishStored(bus, subjects.rolloutScored(run.runId), ScoredEpisodeSchema, scored, {
      messageId: `${rolloutIdOf(run.runId, slot)}/1/scored`,
      trace: contextOfTraceparent(traceparent),
    });
    const advantage = isTrained(scored) ? (scored.reward - mean) / (std + 1e-6) : undefined;
    if (otlpUrl === undefined) continue;
    const body = encodeTrace({
      runId: run.runId,
      slot,
      scored,
      advantage,
      // The turns of one task's rollouts have advantages of their own.
      turnAdvantages:
        task === TASK_WITH_TURNS
          ? scored.episode?.turns.map((_, turn) => (turn % 2 === 0 ? 1.25 : -0.75))
          : undefined,
      beginMs: run.startedAtMs + (step - 1) * STEP_MS + 120 + (task * GROUP_SIZE + index) * 25,
    });
    await fetch(`${otlpUrl}/v1/traces`, {
      method: "POST",
      body: Uint8Array.from(body),
      headers: { "content-type": "application/x-protobuf" },
    });
  }
}
