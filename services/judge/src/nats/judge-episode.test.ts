import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TerminalError } from "@hone/core";
import { ScoreRequestSchema } from "@hone/proto-gen/judge";
import { EpisodeSchema, Outcome } from "@hone/proto-gen/rollout";
import { anyMessage, corrupted, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { judgeParts } from "../domain/testing.ts";
import { answerScore } from "./answer-score.ts";
import { judgeEpisode } from "./judge-episode.ts";
import { Panels } from "./panels.ts";

const context = { signal: new AbortController().signal };

const JUDGES_JSON = '[{"kind":"environment","weight":1},{"kind":"format","weight":0.5}]';
const valid = create(EpisodeSchema, {
  runId: "run-1",
  slot: { split: "train", step: 3, task: 1, index: 0 },
  outcome: Outcome.COMPLETED,
  environmentReturn: 1,
  turns: [{ index: 0, finishReason: "stop", infoJson: '{"isValid":true}' }],
});

describe("judgeEpisode()", () => {
  test("gives a finite reward or a terminal error for any episode", async () => {
    const panels = new Panels(judgeParts());
    let scored = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(corrupted(EpisodeSchema, valid), anyMessage(EpisodeSchema)),
        async (episode) => {
          try {
            const result = await judgeEpisode(episode, context, () => panels.of(JUDGES_JSON));
            assert.ok(Number.isFinite(result.reward));
            if (result.scores.length > 0) scored++;
          } catch (error) {
            assert.ok(error instanceof TerminalError, String(error));
          }
        },
      ),
      fuzz(1_000),
    );
    assert.ok(scored > 0);
  });

  test("answerScore() answers any request", async () => {
    const panels = new Panels(judgeParts());
    const runPanels = {
      of: (json: string) => panels.of(json),
      ofRun: () => panels.of(JUDGES_JSON),
    };
    const request = create(ScoreRequestSchema, { episodes: [valid], judgesJson: JUDGES_JSON });
    await fc.assert(
      fc.asyncProperty(corrupted(ScoreRequestSchema, request), async (asked) => {
        const { error, scored } = await answerScore(asked, runPanels, context);
        assert.ok(error !== "" || scored.length === asked.episodes.length);
      }),
      fuzz(300),
    );
  });
});
