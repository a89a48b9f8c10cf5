/** One episode of the wire, judged: the pure path that the stream and the request share. */

import { create } from "@bufbuild/protobuf";
import type { JudgeConfig } from "@hone/config";
import { describeError, InvalidInputError, parseJson } from "@hone/core";
import { outcomeFromWire, outcomeToWire } from "@hone/messaging";
import { type Episode, type ScoredEpisode, ScoredEpisodeSchema } from "@hone/proto-gen/rollout";
import type { JudgedEpisode } from "../domain/judged-episode.ts";
import { outcomeOf, scoreEpisode, type Verdict } from "../domain/score-episode.ts";
import { decodeJudgesJson } from "./decode-judges.ts";

/**
 * Applies the judges. What cannot be judged comes back as `infra_failed` with the reason; it never throws for it.
 * @param judges undefined = those that the episode carries.
 * @throws {TerminalError} when the episode's outcome is none that this version knows.
 */
export function judgeEpisode(episode: Episode, judges?: readonly JudgeConfig[]): ScoredEpisode {
  const judged: JudgedEpisode = {
    outcome: outcomeFromWire(episode.outcome),
    environmentReturn: episode.environmentReturn,
    turns: episode.turns.map((turn) => ({ info: infoOf(turn.infoJson) })),
  };
  const verdict = verdictOn(judged, () => judges ?? decodeJudgesJson(episode.judgesJson));
  if (verdict.kind === "failed") {
    return create(ScoredEpisodeSchema, {
      episode: { ...episode, outcome: outcomeToWire(outcomeOf(judged, verdict)), reason: verdict.reason },
    });
  }
  return verdict.kind === "passed"
    ? create(ScoredEpisodeSchema, { episode })
    : create(ScoredEpisodeSchema, { episode, reward: verdict.reward, scores: [...verdict.scores] });
}

function verdictOn(episode: JudgedEpisode, judges: () => readonly JudgeConfig[]): Verdict {
  try {
    return scoreEpisode(episode, judges());
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return { kind: "failed", judge: "", reason: describeError(error) };
  }
}

/** What a turn says of itself; a turn that says nothing readable says nothing. */
function infoOf(json: string): Readonly<Record<string, unknown>> {
  if (json === "") return {};
  try {
    const value: unknown = parseJson(json);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
