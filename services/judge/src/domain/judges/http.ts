/** The judge `http`: a server of the user gets what a module would get, as JSON, and answers what a module would return. */

import type { Judge } from "../judge.ts";
import { scoreInputOf } from "../judge-input.ts";
import type { ConfigOf, JudgeParts } from "../judge-parts.ts";
import { readJudgement } from "../read-judgement.ts";
import { remoteCall } from "../remote-call.ts";

export function httpJudge(config: ConfigOf<"http">, parts: JudgeParts): Judge {
  const ask = remoteCall(config.url, config, parts);
  return function judgeByHttp(episode, { signal }) {
    return ask(scoreInputOf(episode), readJudgement, signal);
  };
}
