/** Sokoban against transcripts that were made by running ROLL's environment in given rooms. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ActionFormat } from "@hone/agents";
import { readAction } from "../../agents/gym/action-formats.ts";
import { Sokoban, sokobanConfigSchema } from "./sokoban.ts";
import { rollSokoban, roomOf } from "./testing.ts";

describe("Sokoban as ROLL plays it", () => {
  /** Last steps where ROLL marks the episode differently. */
  const differing: { readonly roll: string; readonly isValid: boolean }[] = [];

  for (const { name, options, initial, steps } of rollSokoban.transcripts) {
    test(`${name}: shows, rewards and ends each of ${steps.length} steps alike`, () => {
      const config = sokobanConfigSchema.parse({
        size: options.dim_room,
        boxes: options.num_boxes,
        searchDepth: options.search_depth,
        maxSteps: options.max_steps,
        formatPenalty: options.format_penalty,
      });
      const environment = new Sokoban(config, () => roomOf(...initial));
      assert.equal(environment.reset(0).observation, initial.join("\n"));
      let valid = 0;
      let effective = 0;
      for (const [index, { action, parsed, observation, reward, metrics, ...flags }] of steps.entries()) {
        const read = readAction({ text: action }, ActionFormat.answer, []);
        const step = environment.step(read);
        assert.equal(step.info.action, parsed);
        assert.equal(step.observation, observation.join("\n"));
        assert.equal(step.reward, reward);
        const { action_is_valid, action_is_effective, success } = step.info;
        assert.equal(action_is_valid, metrics.action_is_valid);
        assert.equal(action_is_effective, metrics.action_is_effective);
        assert.equal(success, metrics.success);
        valid += metrics.action_is_valid ? 1 : 0;
        effective += metrics.action_is_effective ? 1 : 0;
        assert.deepEqual(environment.metrics(), {
          success: metrics.success ? 1 : 0,
          action_is_valid: valid / (index + 1),
          action_is_effective: effective / (index + 1),
        });
        // Where ROLL ends an unsolved episode it has reached the limit: ours is truncated then, and not terminated.
        const isUnsolvedEnd = flags.terminated && !metrics.success;
        assert.deepEqual(
          { terminated: step.terminated, truncated: step.truncated },
          isUnsolvedEnd ? { terminated: false, truncated: true } : flags,
        );
        if (isUnsolvedEnd) {
          assert.equal(index + 1, options.max_steps);
          differing.push({ roll: JSON.stringify(flags), isValid: metrics.action_is_valid });
        }
      }
    });
  }

  test("differs at the limit of steps: ROLL calls that terminated, and after an invalid action not even truncated", () => {
    assert.equal(differing.length, 5);
    for (const { roll, isValid } of differing) {
      assert.equal(roll, JSON.stringify({ terminated: true, truncated: isValid }));
    }
    assert.equal(differing.filter(({ isValid }) => !isValid).length, 1);
  });
});
