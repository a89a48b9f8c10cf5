/** The judge `degenerate`: -1 if an answer of the policy is degenerate, else 0; each check gives a metric of 0 or 1. */

import { TurnInfo } from "@hone/rl";
import type { Judge } from "../judge.ts";
import type { ConfigOf } from "../judge-parts.ts";
import type { JudgedEpisode } from "../judged-episode.ts";
import { holdsControlToken, holdsLoop, otherScriptShare } from "../text-checks.ts";

type Config = ConfigOf<"degenerate">;
type Check = Config["checks"][number];

/** Share of letters that may be of another script, to allow for names and quotations. */
const MAX_OTHER_SCRIPT_SHARE = 0.1;
/** Names under which agents and environments report that a turn had a call which could not be read. */
const INVALID_CALL_KEYS = [TurnInfo.invalidToolCalls, "invalid_tool_calls"] as const;

export function degenerateJudge({ checks, scripts }: Config): Judge {
  const holds: Readonly<Record<Check, (episode: JudgedEpisode) => boolean>> = {
    loops: someAnswer(holdsLoop),
    control_tokens: ({ turns }) =>
      turns.some(({ responseText, info }) =>
        [responseText, info[TurnInfo.controlTokens]].some(
          (text) => typeof text === "string" && holdsControlToken(text),
        ),
      ),
    script: someAnswer((text) => otherScriptShare(text, scripts) > MAX_OTHER_SCRIPT_SHARE),
    tool_calls: ({ turns }) => turns.some(({ info }) => INVALID_CALL_KEYS.some((key) => isSome(info[key]))),
  };
  return function judgeDegenerate(episode) {
    const found = checks.map((check) => [check, holds[check](episode) ? 1 : 0] as const);
    return { value: found.some(([, hit]) => hit === 1) ? -1 : 0, metrics: Object.fromEntries(found) };
  };
}

function someAnswer(isBad: (text: string) => boolean): (episode: JudgedEpisode) => boolean {
  return ({ turns }) => turns.some(({ responseText }) => isBad(responseText));
}

function isSome(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : typeof value === "number" && value > 0;
}
