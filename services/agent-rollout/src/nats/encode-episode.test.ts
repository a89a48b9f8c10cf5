import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { RolloutJobSchema } from "@hone/proto-gen/rollout";
import "../domain/built-ins.ts";
import { lakeJob, play, writes } from "../domain/testing/lake-rollouts.ts";
import { encodeEpisode } from "./encode-episode.ts";

test("an action is stored where it is not the model's whole answer, and the state in which the environment was left", async () => {
  const agentConfigJson = JSON.stringify({
    systemPrompt: "",
    instruction: "",
    promptTemplate: "{observation}",
    actionFormat: "text",
  });
  const limits = { ...lakeJob().limits, maxTurns: 2 };
  const whole = await play(lakeJob({ agentConfigJson, limits }), writes("Up"));
  const episode = encodeEpisode(create(RolloutJobSchema), whole);
  assert.deepEqual(
    episode.turns.map(({ responseText, actions }) => [responseText, actions.map(({ text }) => text)]),
    [
      ["Up", [undefined]],
      ["Up", [undefined]],
    ],
  );
  assert.match(episode.environmentState, /^[0-9a-f]{16}$/);
  const tagged = await play(lakeJob({ limits }), writes("<answer>Up</answer>"));
  assert.deepEqual(
    encodeEpisode(create(RolloutJobSchema), tagged).turns.map(({ actions }) =>
      actions.map(({ text }) => text),
    ),
    [["Up"], ["Up"]],
  );
});
