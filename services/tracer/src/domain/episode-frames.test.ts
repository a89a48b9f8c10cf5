import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { TaskSchema } from "@hone/proto-gen/dataset";
import {
  EpisodeSchema,
  type RenderReply,
  RenderReplySchema,
  type RenderRequest,
} from "@hone/proto-gen/rollout";
import { episodeFrames } from "./episode-frames.ts";

const episode = create(EpisodeSchema, {
  task: {
    id: "lake:7",
    environment: "frozen_lake",
    environmentSeed: 7n,
    environmentConfigJson: '{"size":4}',
  },
  environmentState: "end",
  turns: [
    { index: 0, promptText: "P_", responseText: "think", infoJson: "{}" },
    {
      index: 1,
      promptText: "go on",
      responseText: "<answer>Right</answer>",
      infoJson: '{"state":"start"}',
      actions: [{ text: "Right" }],
      reward: 1,
    },
    { index: 2, promptText: "_P", responseText: "Up", infoJson: "no json", actions: [{}, { text: "" }] },
  ],
});

/** Answers with `reply` and keeps the requests. */
function rollouts(reply: MessageInitShape<typeof RenderReplySchema> | undefined) {
  const asked: RenderRequest[] = [];
  const ask = async (request: RenderRequest): Promise<RenderReply | undefined> => {
    asked.push(request);
    return reply && create(RenderReplySchema, reply);
  };
  return { asked, ask };
}

describe("episodeFrames()", () => {
  test("asks with the complete actions and the states in which they were taken", async () => {
    const { asked, ask } = rollouts({ problem: "none" });
    await episodeFrames("lake-1", episode, ask);
    const [{ runId, task, turns, environmentState } = {}] = asked;
    assert.equal(runId, "lake-1");
    assert.deepEqual(task, episode.task);
    assert.equal(environmentState, "end");
    assert.deepEqual(
      turns?.map(({ index, actions, state }) => ({ index, actions, state })),
      [
        { index: 1, actions: ["Right"], state: "start" },
        { index: 2, actions: ["Up", ""], state: "" },
      ],
    );
  });

  test("gives states with pictures, and the text that an environment draws instead of its observation", async () => {
    const { ask } = rollouts({
      problem: "Some are left out.",
      frames: [
        { observation: "P_", picture: { case: "svg", value: "<svg/>" } },
        { observation: "_P", turn: 1, action: "Right", reward: 1, picture: { case: "text", value: ".P" } },
        { observation: "_P", turn: 2, picture: { case: "png", value: Uint8Array.of(1, 2) } },
        { observation: "_P", turn: 2 },
      ],
    });
    const { source, notice, frames } = await episodeFrames("lake-1", episode, ask);
    assert.equal(source, "environment");
    assert.equal(notice, "Some are left out.");
    assert.deepEqual(frames, [
      { after: null, action: null, reward: null, text: "P_", svg: "<svg/>" },
      { after: 1, action: "Right", reward: 1, text: ".P" },
      { after: 2, action: "", reward: 0, text: "_P", png: "AQI=" },
      { after: 2, action: "", reward: 0, text: "_P" },
    ]);
  });

  test("shows what was recorded, and says why, where there are no states", async () => {
    const { ask } = rollouts({ problem: "It came to another state." });
    assert.deepEqual(await episodeFrames("lake-1", episode, ask), {
      source: "record",
      notice: "It came to another state. Shown is what the model was shown in each turn.",
      frames: [
        { after: null, action: null, reward: null, text: "P_" },
        { after: 0, action: null, reward: null, text: "go on" },
        { after: 1, action: "Right", reward: 1, text: "_P" },
      ],
    });
    const silent = await episodeFrames("lake-1", episode, rollouts(undefined).ask);
    assert.match(silent.notice, /as agent-rollout does not answer/);
    assert.equal(silent.frames.length, 3);
  });

  test("asks for nothing that cannot be played: no environment, or a record without actions", async () => {
    const { asked, ask } = rollouts({});
    const row = create(EpisodeSchema, {
      ...episode,
      task: create(TaskSchema, { id: "rows:1", rowJson: "{}" }),
    });
    assert.match((await episodeFrames("r", row, ask)).notice, /^The task has no environment\./);
    const old = create(EpisodeSchema, {
      ...episode,
      turns: episode.turns.map((turn) => ({ ...turn, actions: [] })),
    });
    assert.match((await episodeFrames("r", old, ask)).notice, /^No action is recorded/);
    const none = await episodeFrames("r", create(EpisodeSchema, { ...episode, turns: [] }), ask);
    assert.deepEqual(none.frames, []);
    assert.deepEqual(asked, []);
  });
});
