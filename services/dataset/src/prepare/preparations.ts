/**
 * How records of public data sets become rows. The rows are the same as verl and ChatLearn make from these records.
 *
 * To add a data set, write a function from record to row and add a line to PREPARATIONS.
 */

import { lastBoxed } from "@hone/rl";

type JsonObject = Readonly<Record<string, unknown>>;

/** The place of a record in its data set. */
export interface RecordPlace {
  readonly split: string;
  /** Among the records of the split, from 0. */
  readonly index: number;
}

/** How one public data set is prepared. */
export interface Preparation {
  /** Appended to the question after a space, so that answers take the form that the judge reads. */
  readonly instruction: string;
  /** Folder of the configuration to use, where the data set has several; absent = all files. */
  readonly subset?: string;
  /** Files to ignore although their names name a split too. */
  readonly exclude?: RegExp;
  /** The judge that scores answers to its rows. */
  readonly judge: string;
  /** @returns undefined for a record that has no question or no answer. */
  rowOf(record: JsonObject, place: RecordPlace, instruction: string): JsonObject | undefined;
}

/** `openai/gsm8k`: records `{ question, answer }`, where the answer's last line is like `#### 72`. */
const gsm8k: Preparation = {
  instruction: 'Let\'s think step by step and output the final answer after "####".',
  subset: "main",
  exclude: /socratic/,
  judge: "gsm8k",
  rowOf({ question, answer }, { split, index }, instruction) {
    if (typeof question !== "string" || typeof answer !== "string") return undefined;
    const truth = /#### (-?[0-9.,]+)/.exec(answer)?.[1]?.replaceAll(",", "");
    if (truth === undefined) return undefined;
    return rowWith("openai/gsm8k", `${question} ${instruction}`, truth, { split, index, answer, question });
  },
};

/** The MATH data set: records `{ problem, level, type, solution }`, where the last `\boxed{}` of the solution holds the answer. */
const math: Preparation = {
  instruction: "Let's think step by step and output the final answer within \\boxed{}.",
  judge: "math",
  rowOf({ problem, solution, level, type }, { split, index }, instruction) {
    if (typeof problem !== "string" || typeof solution !== "string") return undefined;
    const truth = lastBoxed(solution);
    if (truth === undefined) return undefined;
    return rowWith("DigitalLearningGmbH/MATH-lighteval", `${problem} ${instruction}`, truth, {
      split,
      index,
      ...(typeof level === "string" && { level }),
      ...(typeof type === "string" && { type }),
    });
  },
};

export const PREPARATIONS = { gsm8k, math } as const satisfies Readonly<Record<string, Preparation>>;
export type PreparationName = keyof typeof PREPARATIONS;

function rowWith(
  dataSource: string,
  question: string,
  groundTruth: string,
  extraInfo: JsonObject,
): JsonObject {
  return {
    data_source: dataSource,
    prompt: [{ role: "user", content: question }],
    ability: "math",
    reward_model: { style: "rule", ground_truth: groundTruth },
    extra_info: extraInfo,
  };
}
