/** The judge `http`: a server of the user, which gets as JSON what a module gets and answers with what a module returns. */

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
