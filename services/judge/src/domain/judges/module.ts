/**
 * The judge `module`: a function of the user.
 *
 *     export function computeScore({ dataSource, solution, groundTruth, extraInfo, metadata }) { return 1; }
 *
 * It runs in this process: breakpoints in it work, but a function that blocks for ever cannot be stopped. A file that has
 * changed is loaded again for the next run.
 */

import { deadline } from "@hone/core";
import { JudgeError } from "../../errors.ts";
import type { Judge } from "../judge.ts";
import { type ScoreInput, scoreInputOf } from "../judge-input.ts";
import type { ConfigOf, JudgeParts } from "../judge-parts.ts";
import { readJudgement } from "../read-judgement.ts";

const EXPORT = "computeScore";

/** @throws {ConfigError | InvalidInputError | JudgeError} when modules are not allowed, or the file is missing, cannot be loaded or exports no such function. */
export async function moduleJudge(
  { kind, path, deadlineMs }: ConfigOf<"module">,
  { gate }: JudgeParts,
): Promise<Judge> {
  const module = await gate.module(path, "judge.path");
  let loaded: unknown;
  try {
    loaded = await module.load();
  } catch (cause) {
    throw new JudgeError(kind, `the judge's module "${path}" cannot be loaded`, { cause });
  }
  const computeScore = exportOf(loaded);
  if (computeScore === undefined) {
    throw new JudgeError(kind, `the judge's module "${path}" must export a function ${EXPORT}`);
  }
  return async function judgeByModule(episode, { signal }) {
    const score = await deadline(
      `${EXPORT} of ${path}`,
      deadlineMs,
      async () => computeScore(scoreInputOf(episode)),
      {
        signal,
      },
    );
    return readJudgement(score);
  };
}

function exportOf(loaded: unknown): ((input: ScoreInput) => unknown) | undefined {
  const found: unknown =
    typeof loaded === "object" && loaded !== null ? Reflect.get(loaded, EXPORT) : undefined;
  return typeof found === "function" ? (found as (input: ScoreInput) => unknown) : undefined;
}
