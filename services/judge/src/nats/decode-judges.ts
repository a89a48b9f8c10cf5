/** Decodes judges from JSON. */

import { agentOfPart, type JudgeConfig, judgesOfPart, parseJudges, type RunConfig } from "@hone/config";
import { InvalidInputError, parseJson } from "@hone/core";

/** @throws {InvalidInputError} when the text is not a list of judges. */
export function decodeJudgesJson(json: string): readonly JudgeConfig[] {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw refusal(`the list of judges is not JSON: ${json.slice(0, 200)}`, error);
  }
  const parsed = parseJudges(value);
  if (parsed.kind === "judges") return parsed.judges;
  throw refusal(parsed.problems.map((problem) => problem.message).join("; "));
}

function refusal(message: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(message, { path: "judge", allowed: "a list of judges" }, { cause });
}

/** The lists of judges in what should be a run file, each with its key; nothing is known of the values. */
export function judgeListsIn(configJson: string): { readonly key: string; readonly value: unknown }[] {
  const config = objectIn(configJson);
  const dataset = Object(config.dataset) as Readonly<Record<string, unknown>>;
  const ofParts = ["train", "eval"].flatMap((split) => {
    const { parts } = Object(dataset[split]) as Readonly<Record<string, unknown>>;
    if (!Array.isArray(parts)) return [];
    return parts.map((part: unknown, index) => ({
      key: `dataset.${split}.parts[${index}].judge`,
      value: (Object(part) as Readonly<Record<string, unknown>>).judge,
    }));
  });
  return [{ key: "judge", value: config.judge }, ...ofParts.filter(({ value }) => value !== undefined)];
}

/**
 * The value of `judge` in a run file, or in the part of its tasks with that name, where it has judges of its own; undefined where
 * the text is not a run file.
 * @param part empty = the judges of the run.
 */
export function judgesIn(configJson: string, part = ""): unknown {
  const { dataset, judge } = objectIn(configJson) as Partial<Pick<RunConfig, "dataset" | "judge">>;
  if (part === "" || dataset === undefined || judge === undefined) return judge;
  return judgesOfPart({ dataset, judge }, part);
}

/** What a run file says about rewards that are given after a rollout has ended. */
export interface RewardRules {
  /** How long they are waited for; undefined = not at all. */
  readonly rewardDeadlineMs: number | undefined;
  /** Whether the agent's session may give them. */
  readonly takesSessionRewards: boolean;
}

/** @param part of the run's tasks, which may have an agent of its own; empty = the run's. */
export function rewardRulesIn(configJson: string, part: string): RewardRules {
  const config = objectIn(configJson) as Partial<Pick<RunConfig, "agent" | "dataset" | "rollout">>;
  const { agent, dataset, rollout } = config;
  const own = agent !== undefined && dataset !== undefined ? agentOfPart({ agent, dataset }, part) : agent;
  const rewardDeadlineMs = rollout?.rewardDeadlineMs;
  return {
    rewardDeadlineMs: typeof rewardDeadlineMs === "number" ? rewardDeadlineMs : undefined,
    takesSessionRewards: own?.config?.rewards === "session",
  };
}

function objectIn(json: string): Readonly<Record<string, unknown>> {
  try {
    return Object(parseJson(json)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}
