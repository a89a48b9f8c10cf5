/** Scored episodes of the sample run, with the texts of the first example's agent. */

import { create } from "@bufbuild/protobuf";
import { Outcome as OutcomeWord, Random, type Slot } from "@hone/core";
import { outcomeToWire, slotToWire } from "@hone/messaging";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import type { Tokenizer } from "@hone/tokenizer";

const MOVES = ["Left", "Down", "Right", "Up"] as const;

/** Makes an episode of random moves, with prompts and answers as the first example's agent has them. */
export function sampleEpisode(runId: string, slot: Slot, tokenizer: Tokenizer): ScoredEpisode {
  const random = new Random(slot.step * 10_000 + slot.task * 100 + slot.index);
  const moves = 2 + random.nextInt(6);
  const isSuccess = random.next() < 0.62;
  const outcome = slot.index === 6 && slot.task === 0 ? OutcomeWord.infraFailed : OutcomeWord.completed;
  const turns: object[] = [];
  const samples: object[] = [];
  for (let index = 0; index < moves; index++) {
    const move = random.pick(MOVES);
    const isValid = random.next() > 0.06;
    const prompt = `<|user|>${sampleMap(random)}\n${random.nextInt(4)}${random.nextInt(4)}${random.nextInt(4)}${random.nextInt(4)}<|assistant|>`;
    const response = isValid ? `<answer>${move}</answer>` : `<answer>${move}√`;
    const promptIds = tokenizer.encode(prompt);
    const responseIds = tokenizer.encode(`${response}<|end|>`);
    samples.push({
      tokenIds: [...promptIds, ...responseIds],
      lossMask: Uint8Array.from([...promptIds.map(() => 0), ...responseIds.map(() => 1)]),
      logprobs: responseIds.map((_, position) =>
        position === 1 ? -0.2 - 1.4 * random.next() : -0.001 - 0.05 * random.next(),
      ),
      versions: [{ version: slot.step - 1, tokenCount: responseIds.length }],
    });
    const isLast = index === moves - 1;
    turns.push({
      index,
      sample: index,
      sampledBegin: promptIds.length,
      sampledEnd: promptIds.length + responseIds.length,
      promptText: prompt,
      responseText: response,
      finishReason: "stop",
      infoJson: JSON.stringify({ action: isValid ? move : null, isValid }),
      ...(isLast && { reward: isSuccess ? 1 : 0 }),
    });
  }
  const reward = isSuccess && outcome === OutcomeWord.completed ? 1 : 0;
  return create(ScoredEpisodeSchema, {
    reward,
    scores: outcome === OutcomeWord.completed ? [{ judge: "environment", weight: 1, value: reward }] : [],
    episode: {
      runId,
      slot: slotToWire(slot),
      attempt: slot.index === 3 ? 2 : 1,
      failedAttempts: slot.index === 3 ? ["no replica answered for 5000 ms"] : [],
      outcome: outcomeToWire(outcome),
      reason:
        outcome === OutcomeWord.completed ? "" : "every attempt failed: no replica answered for 5000 ms",
      metrics: { success: reward },
      metadataJson: "{}",
      environmentReturn: reward,
      durationMs: 310 + random.nextInt(200),
      generationMs: 250,
      task: {
        id: `frozen_lake:${slot.step * 32 + slot.task}`,
        environment: "frozen_lake",
        environmentSeed: BigInt(slot.step * 32 + slot.task),
        environmentConfigJson: '{"size":4,"slippery":false}',
      },
      turns,
      samples,
    },
  });
}

function sampleMap(random: Random): string {
  const cells: string[] = Array.from({ length: 16 }, () => (random.next() < 0.8 ? "_" : "O"));
  cells[random.nextInt(8)] = "P";
  cells[8 + random.nextInt(8)] = "G";
  return [0, 4, 8, 12].map((begin) => cells.slice(begin, begin + 4).join("")).join("\n");
}
