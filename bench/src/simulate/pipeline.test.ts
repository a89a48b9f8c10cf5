import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { logNormal, sigmaOf, uniformTurns } from "./distributions.ts";
import { type Cluster, type Schedule, simulate, type Workload } from "./pipeline.ts";

/** So many that the last steps, before which nothing is asked for any more, do not count. */
const SIMULATION = { warmSteps: 20, steps: 40_000, seed: 1 };

/** One rollout of one turn a step: 10 tokens of 1 ms, a tool of 5 ms, 20 ms of training. */
const WORK: Workload = {
  groupsPerStep: 1,
  groupSize: 1,
  turns: () => 1,
  tokens: () => 10,
  toolMs: () => 5,
  deadlineMs: 1_000,
};
const CLUSTER: Cluster = {
  replicas: 1,
  engine: { baseMs: 1, perSequenceMs: 0 },
  trainMs: 20,
  publishMs: 0,
  shareWhileTraining: 1,
  trainShareWhilePlaying: 1,
};

/** Milliseconds of a step. */
function stepMs(
  work: Partial<Workload>,
  cluster: Partial<Cluster>,
  schedule: Partial<Schedule> = {},
): number {
  const workload = { ...WORK, ...work };
  const found = simulate(workload, { ...CLUSTER, ...cluster }, { maxStaleness: 0, ...schedule }, SIMULATION);
  return (1_000 * workload.groupsPerStep * workload.groupSize) / found.episodesPerSecond;
}

function assertNear(found: number, expected: number, tolerance = 1e-4): void {
  assert.ok(Math.abs(found - expected) <= tolerance * Math.abs(expected), `${found} instead of ${expected}`);
}

describe("a simulated step", () => {
  test("takes generation, tools and training one after the other where the run is synchronous", () => {
    assertNear(stepMs({}, {}), 10 + 5 + 20);
    assertNear(stepMs({ turns: () => 3 }, { publishMs: 7 }), 3 * (10 + 5) + 20 + 7);
  });

  test("takes the longer of playing and training where rollouts of later steps are played", () => {
    assertNear(stepMs({}, {}, { maxStaleness: 1 }), 20);
    // Two groups are out, each for 100 ms until it is trained: two steps in 100 ms and the training of one.
    assertNear(stepMs({ toolMs: () => 90 }, {}, { maxStaleness: 1 }), (100 + 20) / 2);
  });

  test("ends a rollout when its tools have taken as long as they may", () => {
    assertNear(stepMs({ turns: () => 9, toolMs: () => 400 }, {}), 3 * 10 + 1_000 + 20);
  });

  test("lets sequences share an engine, and spreads them over replicas", () => {
    const engine = { baseMs: 1, perSequenceMs: 1 };
    assertNear(stepMs({ groupSize: 2 }, { engine }), 10 * (1 + 2) + 5 + 20);
    assertNear(stepMs({ groupSize: 2 }, { engine, replicas: 2 }), 10 * (1 + 1) + 5 + 20);
  });

  test("slows engines down that share their machine with training", () => {
    // A group plays while the one before it is trained: 20 ms at half of the speed, and 30 ms alone.
    const work = { toolMs: () => 0, tokens: () => 40 };
    assertNear(stepMs(work, { shareWhileTraining: 0.5 }, { maxStaleness: 1 }), (20 + 30 + 20) / 2);
  });

  test("is not shorter than all work together where engines and trainer share one machine", () => {
    const work = { toolMs: () => 0, tokens: () => 40 };
    const engine = { baseMs: 0, perSequenceMs: 1 };
    const shared = { engine, shareWhileTraining: 0.5, trainShareWhilePlaying: 0.5 };
    for (const maxStaleness of [0, 1, 2]) assertNear(stepMs(work, shared, { maxStaleness }), 40 + 20);
    // What waits for tools leaves the machine to the trainer.
    assertNear(stepMs({ ...work, toolMs: () => 30 }, shared, { maxStaleness: 2 }), 40 + 20);
  });

  test("waits for the first groups only where more are played than it trains", () => {
    let drawn = 0;
    // Every fourth tool takes long.
    const toolMs = () => (drawn++ % 4 === 3 ? 500 : 5);
    const work = { groupsPerStep: 3, toolMs };
    assertNear(stepMs({ ...work, groupsPerStep: 4 }, {}), 10 + 500 + 20);
    drawn = 0;
    assertNear(stepMs(work, {}, { spareGroups: 1 }), 10 + 5 + 20);
  });

  test("lets rollouts wait where agent-rollout has no place for them", () => {
    // Four rollouts of 10 + 90 ms in two places, one pair after the other.
    const work = { groupsPerStep: 4, toolMs: () => 90, concurrency: 2 };
    assertNear(stepMs(work, {}), 2 * (10 + 90) + 20);
    // What waits has no token yet, so it is of the version that is there when it begins.
    const found = simulate({ ...WORK, ...work }, CLUSTER, { maxStaleness: 1 }, SIMULATION);
    assert.equal(found.givenUp, 0);
  });

  test("gives up what grows too old, and never trains it", () => {
    let drawn = 0;
    const work = { ...WORK, groupsPerStep: 4, toolMs: () => (drawn++ % 8 === 7 ? 400 : 5) };
    const found = simulate(work, CLUSTER, { maxStaleness: 1 }, SIMULATION);
    assert.ok(found.givenUp > 0 && found.staleness <= 1, JSON.stringify(found));
    assert.ok(found.trainerIdle >= 0 && found.trainerIdle < 1);
  });
});

describe("distributions", () => {
  const drawn = (draw: (random: Random) => number) => {
    const random = new Random(3);
    return Array.from({ length: 200_000 }, () => draw(random)).sort((a, b) => a - b);
  };
  const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

  test("log-normal: the mean and the 99th percentile are those that were asked for", () => {
    const values = drawn(logNormal(300, sigmaOf(300, 3_000)!));
    assertNear(meanOf(values), 300, 0.05);
    assertNear(values[Math.floor(0.99 * values.length)]!, 3_000, 0.05);
  });

  test("log-normal: there is none with a 99th percentile above 14.9 times the mean, or below it", () => {
    assert.equal(sigmaOf(300, 4_600), undefined);
    assert.equal(sigmaOf(300, 200), undefined);
  });

  test("turns: whole numbers from 1, with their mean", () => {
    const values = drawn(uniformTurns(5));
    assert.deepEqual([values[0], values.at(-1)], [1, 9]);
    assertNear(meanOf(values), 5, 0.01);
  });
});
