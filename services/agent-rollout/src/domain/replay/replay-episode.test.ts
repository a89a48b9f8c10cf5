import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Environment, EnvironmentFrame } from "@hone/agents";
import { deriveSeed, Random } from "@hone/core";
import "../built-ins.ts";
import { environmentMaker } from "../environment-maker.ts";
import type { RolloutRecord } from "../rollout-job.ts";
import { lakeJob, play, writes } from "../testing/lake-rollouts.ts";
import { type RecordedEpisode, replayEpisode } from "./replay-episode.ts";

const LAKE = { name: "frozen_lake", seed: 5, configJson: "{}" };
const lake = environmentMaker(LAKE, undefined);

/** What the record of a rollout says of its actions. */
function recordedOf({ turns, environmentState = "" }: RolloutRecord): RecordedEpisode {
  return {
    seed: LAKE.seed,
    turns: turns.flatMap(({ index, actions, info }) =>
      actions === undefined ? [] : [{ index, actions, state: String(info?.state) }],
    ),
    endState: environmentState,
  };
}

/** Counts its steps; each test changes one of its methods. */
function counter(changes: Partial<Environment> = {}): Environment {
  let count = 0;
  const shown = () => ({ observation: `count ${count}`, info: {} });
  return {
    reset: () => {
      count = 0;
      return shown();
    },
    step: () => {
      count++;
      return { ...shown(), reward: count, terminated: false, truncated: false };
    },
    metrics: () => ({}),
    ...changes,
  };
}

const THREE_STEPS: RecordedEpisode = {
  seed: 1,
  turns: [
    { index: 0, actions: ["a"], state: "" },
    { index: 2, actions: ["b", "c"], state: "" },
  ],
  endState: "",
};

describe("replayEpisode()", () => {
  test("a played rollout is shown state by state, with the actions that the environment was given", async () => {
    const policy = writes("<answer>Up</answer>", "<answer>01</answer>", "no answer", "<answer>Left</answer>");
    const record = await play(lakeJob({ limits: { ...lakeJob().limits, maxTurns: 4 } }), policy);
    const { frames, problem } = await replayEpisode(lake, recordedOf(record));
    assert.equal(problem, "");
    assert.deepEqual(
      frames.map(({ turn, action }) => [turn, action]),
      [
        [undefined, ""],
        [0, "Up"],
        [1, "01"],
        [2, ""],
        [3, "Left"],
      ],
    );
    for (const [index, { observation, picture }] of frames.entries()) {
      assert.equal(picture?.kind, "svg");
      // What the model saw in a turn is the frame before its action.
      const shown = record.turns[index]?.promptText;
      if (shown !== undefined)
        assert.ok(shown.includes(observation), `${shown} does not show ${observation}`);
    }
  });

  test("random episodes come to their recorded states again, on slippery ice too", async () => {
    const configJson = '{"slippery":true}';
    const make = environmentMaker({ ...LAKE, configJson }, undefined);
    const random = new Random(deriveSeed(7, "moves"));
    const task = { id: "lake:5", environment: { ...LAKE, configJson }, row: undefined };
    for (let round = 0; round < 20; round++) {
      const answers = Array.from(
        { length: 10 },
        () => `<answer>${random.pick(["Left", "Down", "Right", "Up"])}</answer>`,
      );
      const record = await play(lakeJob({ task }), writes(...answers));
      const { frames, problem } = await replayEpisode(make, recordedOf(record));
      assert.equal(problem, "");
      assert.equal(frames.length, record.turns.length + 1);
    }
  });

  test("an environment that was changed is noticed at the turn where it differs, and after the last one", async () => {
    const record = await play(lakeJob(), writes("<answer>Up</answer>", "<answer>Left</answer>"));
    const recorded = recordedOf(record);
    const changed = environmentMaker({ ...LAKE, configJson: '{"size":5}' }, undefined);
    const { frames, problem } = await replayEpisode(changed, recorded);
    assert.deepEqual(frames, []);
    assert.match(problem, /another state than the recorded one at turn 1: the environment was changed/);
    const end = await replayEpisode(lake, { ...recorded, endState: "other" });
    assert.match(end.problem, /after its last turn/);
    assert.deepEqual(end.frames, []);
  });

  test("an environment that ends earlier than recorded is noticed", async () => {
    const step = () => {
      throw new Error("the episode is over");
    };
    const { frames, problem } = await replayEpisode(() => counter({ step }), THREE_STEPS);
    assert.deepEqual(frames, []);
    assert.match(problem, /at turn 1, where it failed \(the episode is over\)/);
  });

  test("an environment that draws nothing is shown by its observations, and one turn may act more than once", async () => {
    const { frames, problem } = await replayEpisode(() => counter(), THREE_STEPS);
    assert.equal(problem, "");
    assert.deepEqual(frames, [
      { turn: undefined, action: "", reward: 0, observation: "count 0", picture: undefined },
      { turn: 0, action: "a", reward: 1, observation: "count 1", picture: undefined },
      { turn: 2, action: "b", reward: 2, observation: "count 2", picture: undefined },
      { turn: 2, action: "c", reward: 3, observation: "count 3", picture: undefined },
    ]);
  });

  test("a drawing that fails, or that is no frame, is said once, and the observations remain", async () => {
    let asked = 0;
    const failing = () => {
      asked++;
      throw new Error("no screen");
    };
    const failed = await replayEpisode(() => counter({ render: failing }), THREE_STEPS);
    assert.equal(asked, 1);
    assert.equal(failed.frames.length, 4);
    assert.match(failed.problem, /shown by its observations: render\(\) failed with "no screen"\.$/);
    for (const wrong of ["text", { kind: "svg", svg: "<html>" }, { kind: "png", bytes: new Uint8Array(9) }]) {
      const render = () => wrong as unknown as EnvironmentFrame;
      const { frames, problem } = await replayEpisode(() => counter({ render }), THREE_STEPS);
      assert.match(problem, /gave something else than a frame/);
      assert.ok(frames.every(({ picture }) => picture === undefined));
    }
  });

  test("frames end at the limit in bytes, which is said", async () => {
    const render = () => ({ kind: "text" as const, text: "x".repeat(400_000) });
    const { frames, problem } = await replayEpisode(() => counter({ render }), THREE_STEPS, {
      maxBytes: 2 ** 20,
    });
    assert.equal(frames.length, 2);
    assert.equal(problem, "Frames after the first 2 are left out, as all together have more than 1 MiB.");
  });

  test("an environment that takes too long is given up and closed", async () => {
    let closed = 0;
    const slow = counter({
      step: async () => {
        await wait(60_000, undefined, { ref: false });
        throw new Error("never reached");
      },
      close: () => {
        closed++;
      },
    });
    const { frames, problem } = await replayEpisode(() => slow, THREE_STEPS, { deadlineMs: 50 });
    assert.deepEqual(frames, []);
    assert.equal(problem, "The episode could not be played again: its environment took longer than 0.05 s.");
    assert.equal(closed, 1);
  });

  test("an environment whose steps return at once is given up too", async () => {
    const turns = Array.from({ length: 1_000_000 }, (_, index) => ({ index, actions: ["a"], state: "" }));
    const { problem } = await replayEpisode(() => counter(), { ...THREE_STEPS, turns }, { deadlineMs: 50 });
    assert.match(problem, /took longer than 0.05 s/);
  });
});
