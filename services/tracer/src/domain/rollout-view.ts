/**
 * A stored rollout, arranged for reading: for each turn the tokens that it added, each with its details.
 *
 * A sample is one row of T tokens, and a turn refers to the tokens that it sampled in it, [begin, end). The tokens between
 * the previous turn and `begin` are the turn's context: prompt, observation, tool results. The tokens after the last turn
 * are the tail.
 */

import { parseJson } from "@hone/core";
import type { Episode, Sample, Score, ScoredEpisode, Turn } from "@hone/proto-gen/rollout";
import { type FinishReason, readFinishReason } from "@hone/rl";
import { Attr } from "@hone/telemetry";
import { type ChatMessage, type ChatSource, chatOf } from "./chat/chat-view.ts";
import { type SampleNode, sampleTree } from "./chat/sample-tree.ts";

/** One token, as the page draws it. */
export interface TokenView {
  readonly id: number;
  /** Absent where the run's tokenizer cannot be read. */
  readonly text?: string;
  /** Whether the model sampled the token; only such tokens are trained. */
  readonly isSampled: boolean;
  /** Log-probability under the sampling distribution; only for sampled tokens. */
  readonly logprob?: number;
  /** Policy version that sampled it. */
  readonly version?: number;
  /** The advantage that it was trained with: its turn's where turns have their own, else the rollout's; absent = not known. */
  readonly advantage?: number;
}

/** Training figures of a rollout, from its `train` span. */
export interface TrainedWith {
  readonly advantage: number;
  /** The span's other numbers; the advantages of turns are among them where turns have their own. */
  readonly figures: Readonly<Record<string, number | null>>;
}

export interface TurnView {
  readonly index: number;
  readonly sample: number;
  readonly promptText: string;
  readonly responseText: string;
  readonly finishReason: FinishReason;
  /** Given by the environment or a tool. */
  readonly reward: number | null;
  /** What each judge gave this turn, in addition to its value for the episode. */
  readonly judged: ReadonlyArray<{ readonly judge: string; readonly value: number }>;
  readonly info: unknown;
  /** The context since the previous turn, then the sampled tokens. */
  readonly tokens: readonly TokenView[];
  /** The same as messages; the last one is the answer. */
  readonly chat: readonly ChatMessage[];
}

export interface RolloutView {
  readonly turns: readonly TurnView[];
  /** A turn whose `sample` is not below this number is in no sample: it was given up, or it is not trained. */
  readonly numSamples: number;
  /** In the order of the samples. */
  readonly tree: readonly SampleNode[];
  /** The tokens after the last turn, of each sample that has some. */
  readonly tails: ReadonlyArray<{ readonly sample: number; readonly tokens: readonly TokenView[] }>;
  readonly scores: ReadonlyArray<{
    readonly judge: string;
    readonly weight: number;
    readonly value: number;
    /** The judge's own words; empty = it gave none. */
    readonly reason: string;
  }>;
  readonly environmentReturn: number;
  /** What the agent says that single roles earned; empty = it says nothing of roles. */
  readonly roleRewards: Readonly<Record<string, number>>;
  readonly failedAttempts: readonly string[];
  readonly metrics: Readonly<Record<string, number>>;
  readonly metadata: unknown;
  readonly generationMs: number;
  readonly task: {
    readonly id: string;
    readonly environment: string;
    readonly seed: string;
    readonly config: unknown;
    readonly row: unknown;
  };
}

/** Text of one token, decoded alone; undefined where it is not known. */
export type TokenText = (id: number) => string | undefined;

/** What the run's tokenizer tells. */
export interface RunTokens {
  readonly textOf: TokenText;
  /** Undefined where the tokenizer has none, or cannot be read. */
  readonly chatTemplate: string | undefined;
}

/**
 * @param trained absent where the rollout was not trained or its `train` span did not arrive.
 * @throws {TerminalError} when it is not known why a turn ended.
 */
export function rolloutViewOf(
  scored: ScoredEpisode,
  episode: Episode,
  { textOf, chatTemplate }: RunTokens,
  trained?: TrainedWith,
): RolloutView {
  const samples = episode.samples.map((sample, index) =>
    withAdvantages(tokensOf(sample, textOf), index, episode, trained),
  );
  const shown = samples.map(() => 0);
  const source = { chatTemplate, hasEnvironment: (episode.task?.environment ?? "") !== "" };
  const turns = episode.turns.map((turn) => {
    const tokens = samples[turn.sample] ?? [];
    const begin = Math.min(shown[turn.sample] ?? 0, turn.sampledBegin);
    shown[turn.sample] = Math.max(turn.sampledEnd, begin);
    return turnViewOf(turn, scored.scores, tokens.slice(begin, turn.sampledEnd), source);
  });
  const tails = samples
    .map((tokens, sample) => ({ sample, tokens: tokens.slice(shown[sample] ?? 0) }))
    .filter(({ tokens }) => tokens.length > 0);
  return {
    turns,
    numSamples: samples.length,
    tree: sampleTree(episode),
    tails,
    scores: scored.scores.map(({ judge, weight, value, reason }) => ({ judge, weight, value, reason })),
    environmentReturn: episode.environmentReturn,
    roleRewards: episode.roleRewards,
    failedAttempts: episode.failedAttempts,
    metrics: episode.metrics,
    metadata: jsonOrText(episode.metadataJson),
    generationMs: episode.generationMs,
    task: {
      id: episode.task?.id ?? "",
      environment: episode.task?.environment ?? "",
      seed: String(episode.task?.environmentSeed ?? 0n),
      config: jsonOrText(episode.task?.environmentConfigJson ?? ""),
      row: jsonOrText(episode.task?.rowJson ?? ""),
    },
  };
}

function tokensOf(sample: Sample, textOf: TokenText): TokenView[] {
  const versionOf = versionReader(sample);
  let sampled = 0;
  return sample.tokenIds.map((id, position) => {
    const text = textOf(id);
    const named = text === undefined ? { id } : { id, text };
    if (sample.lossMask[position] !== 1) return { ...named, isSampled: false };
    const logprob = sample.logprobs[sampled];
    const version = versionOf(sampled++);
    return {
      ...named,
      isSampled: true,
      ...(logprob !== undefined && Number.isFinite(logprob) && { logprob }),
      ...(version !== undefined && { version }),
    };
  });
}

/** Gives each sampled token the advantage that `tokenAdvantages` of @hone/rl gives to the loss: a token in no turn has the rollout's. */
function withAdvantages(
  tokens: readonly TokenView[],
  sample: number,
  { turns }: Episode,
  trained: TrainedWith | undefined,
): readonly TokenView[] {
  if (trained === undefined) return tokens;
  const advantages = new Array<number>(tokens.length).fill(trained.advantage);
  for (const turn of turns) {
    const own = trained.figures[`${Attr.turnAdvantages}.${turn.index}`];
    if (turn.sample === sample && typeof own === "number")
      advantages.fill(own, turn.sampledBegin, turn.sampledEnd);
  }
  return tokens.map((token, position) =>
    token.isSampled ? { ...token, advantage: advantages[position] ?? trained.advantage } : token,
  );
}

/** Makes a function that gives the version of the n-th sampled token; it must be called with n = 0, 1, 2 … */
function versionReader(sample: Sample): (sampled: number) => number | undefined {
  let span = 0;
  let end = sample.versions[0]?.tokenCount ?? 0;
  return (sampled) => {
    while (sampled >= end && span < sample.versions.length) {
      span++;
      end += sample.versions[span]?.tokenCount ?? 0;
    }
    return sample.versions[span]?.version;
  };
}

function turnViewOf(
  turn: Turn,
  scores: readonly Score[],
  tokens: readonly TokenView[],
  source: ChatSource,
): TurnView {
  return {
    index: turn.index,
    sample: turn.sample,
    promptText: turn.promptText,
    responseText: turn.responseText,
    finishReason: readFinishReason(turn.finishReason),
    reward: turn.reward ?? null,
    judged: scores.flatMap(({ judge, turnRewards }) =>
      turnRewards.filter((each) => each.turn === turn.index).map(({ value }) => ({ judge, value })),
    ),
    info: jsonOrText(turn.infoJson),
    tokens,
    chat: chatOf(turn, source),
  };
}

/** The value of a JSON text; a text that is not JSON is returned as it is. */
function jsonOrText(json: string): unknown {
  if (json === "") return null;
  try {
    return parseJson(json);
  } catch (error) {
    if (error instanceof SyntaxError) return json;
    throw error;
  }
}
