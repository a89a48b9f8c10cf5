/** A scored episode with tool calls, thoughts and a history that branches, as agents with tools make them. */

import { create } from "@bufbuild/protobuf";
import { Outcome as OutcomeWord, type Slot } from "@hone/core";
import { outcomeToWire, slotToWire } from "@hone/messaging";
import { type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";

/** The ids that texts become here need not be those of a tokenizer, as views show texts of their own. */
const VOCABULARY = 40;

interface ChatTurn {
  readonly prompt: string;
  readonly answer: string;
  readonly sample: number;
}

const TURNS: readonly ChatTurn[] = [
  {
    prompt:
      "<|im_start|>system\nYou book trains. Call a tool, then answer in one sentence.<|im_end|>\n<|im_start|>user\nWhich train gets me from Zürich to Bern before nine?<|im_end|>\n<|im_start|>assistant\n",
    answer:
      '<think>\nI need the departures in the morning, so I ask the timetable.\n</think>\n\nLet me look.\n<tool_call>\n{"name": "find_trains", "arguments": {"from": "Zürich HB", "to": "Bern", "arriveBefore": "09:00"}}\n</tool_call><|im_end|>',
    sample: 0,
  },
  {
    prompt:
      '<|im_start|>user\n<tool_response>\n[{"train": "IC 709", "departs": "07:32", "arrives": "08:28"}, {"train": "IR 2059", "departs": "07:02", "arrives": "08:25"}]\n</tool_response><|im_end|>\n<|im_start|>assistant\n',
    answer: "The IC 709 leaves at 07:32 and arrives in Bern at 08:28.<|im_end|>",
    sample: 0,
  },
  {
    prompt:
      "<|im_start|>user\n<tool_response>\nno connection\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    answer: '<tool_call>\n{"name": "find_trains", "arguments": {"from": \n</tool_call><|im_end|>',
    sample: 1,
  },
];

/** @param texts replaces the answers, for texts that were written to do harm. */
export function chatEpisode(runId: string, slot: Slot, texts?: (answer: string) => string): ScoredEpisode {
  const samples: { ids: number[]; mask: number[] }[] = [];
  /** End of the first turn in the first sample, from where the second sample branches. */
  let turnEnd = 0;
  const turns = TURNS.map(({ prompt, answer, sample }, index) => {
    const first = samples[0];
    // The second sample goes back to the end of the first answer.
    samples[sample] ??= {
      ids: first?.ids.slice(0, turnEnd) ?? [],
      mask: first?.mask.slice(0, turnEnd) ?? [],
    };
    const { ids, mask } = samples[sample];
    const promptIds = idsOf(prompt);
    const answerIds = idsOf(answer);
    const begin = ids.length + promptIds.length;
    ids.push(...promptIds, ...answerIds);
    mask.push(...promptIds.map(() => 0), ...answerIds.map(() => 1));
    if (index === 0) turnEnd = ids.length;
    return {
      index,
      sample,
      sampledBegin: begin,
      sampledEnd: ids.length,
      promptText: prompt,
      responseText: texts?.(answer) ?? answer,
      finishReason: "stop",
      infoJson: JSON.stringify(sample === 1 ? { drift: "branch" } : {}),
    };
  });
  const reward = slot.index % 2;
  return create(ScoredEpisodeSchema, {
    reward,
    scores: [
      {
        judge: "helpfulness",
        weight: 1,
        value: reward,
        metrics: { politeness: 0.5 },
        reason: "It names a connection that arrives in time, and says when.",
      },
    ],
    episode: {
      runId,
      slot: slotToWire(slot),
      attempt: 1,
      outcome: outcomeToWire(OutcomeWord.completed),
      metrics: { success: reward },
      metadataJson: '{"verdict":"names a train that arrives in time"}',
      environmentReturn: 0,
      durationMs: 4_200,
      generationMs: 3_100,
      task: { id: `trains:${slot.task}`, rowJson: '{"question":"Zürich to Bern before nine"}' },
      turns,
      samples: samples.map(({ ids, mask }) => ({
        tokenIds: ids,
        lossMask: Uint8Array.from(mask),
        logprobs: mask.filter((bit) => bit === 1).map((_, place) => -0.01 - (place % 7) * 0.2),
        versions: [{ version: 3, tokenCount: mask.filter((bit) => bit === 1).length }],
      })),
    },
  });
}

function idsOf(text: string): number[] {
  return text
    .split(/\s+/)
    .map((word) => [...word].reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0) % VOCABULARY);
}
