/** FrozenLake against transcripts that were made by running ROLL's environment on given maps, with given slips. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { ActionFormat } from "@hone/agents";
import { readAction } from "../../agents/gym/action-formats.ts";
import { FrozenLake, frozenLakeConfigSchema } from "./frozen-lake.ts";
import { type Lake, MOVES, type Move } from "./lake.ts";

interface Transcript {
  readonly name: string;
  readonly options: {
    readonly size: number;
    readonly is_slippery: boolean;
    readonly max_steps: number;
    readonly format_penalty: number;
  };
  /** S start, F frozen, H hole, G goal. */
  readonly map: readonly string[];
  readonly initial: readonly string[];
  readonly steps: ReadonlyArray<{
    readonly action: string;
    readonly parsed: Move | null;
    readonly observation: readonly string[];
    readonly reward: number;
    readonly terminated: boolean;
    readonly metrics: Readonly<Record<"action_is_effective" | "action_is_valid" | "success", boolean>>;
    /** What the ice made of the move; null = no move. */
    readonly moved: Move | null;
  }>;
}

const file = path.join(import.meta.dirname, "fixtures/roll-frozen-lake.json");
const { not_slippery: firm, slippery } = JSON.parse(await readFile(file, "utf8")) as Record<
  "not_slippery" | "slippery",
  readonly Transcript[]
>;

function lakeOf(map: readonly string[]): Lake {
  const cells = [...map.join("")];
  return {
    size: map.length,
    start: cells.indexOf("S"),
    goal: cells.indexOf("G"),
    holes: new Set(cells.flatMap((cell, index) => (cell === "H" ? [index] : []))),
  };
}

/** The draws that turn each move into the one that was made: 0 and 2 are its sides, 1 is the move itself. */
function slipsOf(steps: Transcript["steps"]): number[] {
  return steps.flatMap(({ parsed, moved }) => {
    if (parsed === null || moved === null) return [];
    return [(MOVES.indexOf(moved) - MOVES.indexOf(parsed) + 1 + MOVES.length) % MOVES.length];
  });
}

function open({ map, options, steps }: Transcript, maxSteps: number): FrozenLake {
  const draws = slipsOf(steps).values();
  const config = frozenLakeConfigSchema.parse({
    size: options.size,
    slippery: options.is_slippery,
    formatPenalty: options.format_penalty,
    maxSteps,
  });
  return new FrozenLake(config, {
    lakeOf: () => lakeOf(map),
    slipsOf: () => ({ nextInt: () => draws.next().value! }),
  });
}

/** The action that the agent gym reads from the model's text. */
const actionIn = (text: string) => readAction({ text, tool_calls: [] }, ActionFormat.answer, []);

describe("FrozenLake does what ROLL's environment did", () => {
  for (const transcript of [...firm, ...slippery]) {
    test(transcript.name, () => {
      // ROLL counts steps outside of the environment, so its transcripts go on past the limit.
      const lake = open(transcript, 1_000);
      assert.equal(lake.reset(0).observation, transcript.initial.join("\n"));
      for (const step of transcript.steps) {
        const { observation, reward, terminated, info } = lake.step(actionIn(step.action));
        assert.equal(observation, step.observation.join("\n"));
        assert.equal(reward, step.reward);
        assert.equal(terminated, step.terminated);
        const { action, action_is_effective, action_is_valid, success } = info;
        assert.equal(action, step.parsed);
        const { format_penalty: _reportedAlsoForValidActions, ...metrics } =
          step.metrics as typeof step.metrics & {
            format_penalty: number;
          };
        assert.deepEqual({ action_is_effective, action_is_valid, success }, metrics);
      }
    });
  }

  test("it truncates at its own limit, which ROLL leaves to the caller", () => {
    const long = [...firm, ...slippery].filter(({ steps, options }) => steps.length > options.max_steps);
    assert.ok(long.length > 0);
    for (const transcript of long) {
      const { max_steps: maxSteps } = transcript.options;
      const lake = open(transcript, maxSteps);
      lake.reset(0);
      const ends = transcript.steps
        .slice(0, maxSteps)
        .map(({ action }) => lake.step(actionIn(action)).truncated);
      assert.deepEqual(ends, [...Array.from({ length: maxSteps - 1 }, () => false), true]);
    }
  });
});
