import assert from "node:assert/strict";
import { test } from "node:test";
import { turnTimesOf } from "./like-measured.ts";
import { simulate } from "./pipeline.ts";

const TRAIN_MS = 100;
const TURNS = [2, 3, 3, 4, 6, 7, 7, 8];
const LONGEST = 8;

/** A step of the simulation with rollouts of {@link TURNS}, each drawn as often as the others. */
function step(groups: number, engine: { readonly baseMs: number; readonly perSequenceMs: number }) {
  let drawn = 0;
  const workload = {
    groupsPerStep: groups,
    groupSize: TURNS.length,
    turns: () => TURNS[drawn++ % TURNS.length]!,
    tokens: () => 1,
    toolMs: () => 0,
    deadlineMs: 60_000,
  };
  const cluster = {
    replicas: 1,
    engine,
    trainMs: TRAIN_MS,
    publishMs: 0,
    shareWhileTraining: 1,
    trainShareWhilePlaying: 1,
  };
  const simulation = { warmSteps: 1, steps: 4, seed: 1 };
  const { episodesPerSecond } = simulate(workload, cluster, { maxStaleness: 0 }, simulation);
  const rolloutMs = (1_000 * groups * TURNS.length) / episodesPerSecond - TRAIN_MS;
  return { rolloutMs, turns: groups * TURNS.reduce((sum, turns) => sum + turns, 0), longest: LONGEST };
}

test("the times of a turn are found again in two steps that were simulated with them", () => {
  const engine = { baseMs: 24, perSequenceMs: 1.1 };
  const { baseMs, perRolloutMs } = turnTimesOf(step(1, engine), step(32, engine));
  assert.ok(Math.abs(baseMs - 24) < 1e-6, `baseMs is ${baseMs}`);
  assert.ok(Math.abs(perRolloutMs - 1.1) < 1e-6, `perRolloutMs is ${perRolloutMs}`);
});

test("times that fit no base and share give the mean of a turn in the larger step", () => {
  const few = { rolloutMs: 50, turns: 50, longest: 10 };
  const many = { rolloutMs: 1_600, turns: 1_500, longest: 10 };
  const without = { baseMs: 0, perRolloutMs: 1_600 / 1_500 };
  assert.deepEqual(turnTimesOf(few, many), without);
  assert.deepEqual(turnTimesOf({ ...few, rolloutMs: 2_000 }, many), without);
});
