/** The rollouts of a world in memory, which follow from their seeds alone. */

import { Random, turnSeed } from "@hone/core";
import type { Rollout } from "@hone/rl";
import { rolePlayers } from "../domain/learners/role-players.ts";
import type { Job } from "../domain/rollouts/jobs.ts";
import type { RunRecord } from "../domain/run/run-record.ts";

const VOCABULARY = [5, 6, 7];

/** A completed rollout of two turns: one sample, or one for each role that learns. */
export function playedRollout(run: RunRecord, job: Job): Rollout {
  const random = new Random(turnSeed(run.config.seed, job.slot, 0));
  const tokens = [1, random.pick(VOCABULARY), random.pick(VOCABULARY)];
  const players = rolePlayers(run, job)
    .filter(({ isLearning }) => isLearning)
    .map(({ role }) => role);
  return {
    slot: job.slot,
    attempt: 1,
    outcome: "completed",
    scores: [
      {
        judge: "environment",
        weight: 1,
        value: tokens[1] === VOCABULARY[0] ? 1 : 0,
        turnRewards: [{ turn: 1, value: tokens[2]! }],
        ...(players.length > 0 && {
          roleValues: Object.fromEntries(players.map((role, place) => [role, tokens[1 + (place % 2)]!])),
        }),
      },
    ],
    samples: (players.length === 0 ? [undefined] : players).map((role) => ({
      tokenIds: Uint32Array.from(tokens),
      lossMask: Uint8Array.of(0, 1, 1),
      logprobs: Float32Array.of(-1, -1),
      versions: [{ version: job.lowestVersion, tokenCount: 2 }],
      ...(role !== undefined && { role }),
    })),
    metrics: { success: tokens[1] === VOCABULARY[0] ? 1 : 0 },
    turnCount: 2,
    turns: [
      { sample: 0, begin: 1, end: 2 },
      { sample: 0, begin: 2, end: 3 },
    ],
  };
}
