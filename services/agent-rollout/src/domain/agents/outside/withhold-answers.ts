/**
 * Removes the answer from a row before an external agent gets it.
 *
 * The model may see whatever its agent gets, in a prompt that quotes the task or by a shell that the agent gives it, and a
 * policy that finds the ground truth there learns to copy it. So fields that hold answers are removed by their names, in the
 * row itself and at any depth within it, and also within texts that are JSON:
 *
 *   verl        reward_model, extra_info.answer, tools_kwargs.<tool>.create_kwargs.ground_truth, interaction_kwargs
 *   ROLL        ground_truth, solution, answer, test_cases
 *   ChatLearn   reward_model, answer; messages and conversations for imitation learning, which contain the answers
 *   data sets   golden_answers, target, label, reference, chosen and rejected, and the like
 */

import { parseJson } from "@hone/core";

type Row = Readonly<Record<string, unknown>>;

/** Names in lower case, without separators between their words. */
const ANSWER_NAMES: ReadonlySet<string> = new Set([
  "rewardmodel",
  "groundtruth",
  "groundtruths",
  "gt",
  ...withAffixes("answer"),
  ...withAffixes("answers"),
  ...withAffixes("solution"),
  ...withAffixes("solutions"),
  ...withAffixes("response"),
  ...withAffixes("responses"),
  ...withAffixes("output"),
  ...withAffixes("outputs"),
  ...withAffixes("result"),
  "gold",
  "golden",
  "target",
  "targets",
  "label",
  "labels",
  "reference",
  "references",
  "expected",
  "completion",
  "completions",
  "chosen",
  "rejected",
  "rationale",
  "cot",
  "answeridx",
  "answerkey",
  "answerindex",
  "test",
  "tests",
  "testcase",
  "testcases",
  "testcode",
  "testlist",
  "unittests",
  "inputoutput",
  "messages",
  "conversation",
  "conversations",
  "interactionkwargs",
]);

/** @returns the row without answers; all other columns are unchanged. */
export function withholdAnswers(row: Row): Row {
  return withoutAnswers(row) as Row;
}

function withoutAnswers(value: unknown): unknown {
  if (typeof value === "string") return withheldText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutAnswers);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (isAnswer(name) ? [] : [[name, withoutAnswers(inner)]])),
  );
}

/** Removes answers within a text that is JSON, as some tables have objects in this form. */
function withheldText(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return text;
  }
  const [whole, rest] = [JSON.stringify(value), JSON.stringify(withoutAnswers(value))];
  return whole === rest ? text : rest;
}

function isAnswer(name: string): boolean {
  return ANSWER_NAMES.has(name.toLowerCase().replace(/[^a-z0-9]/g, ""));
}

function withAffixes(name: string): string[] {
  const before = [
    "",
    "gold",
    "golden",
    "correct",
    "final",
    "expected",
    "reference",
    "target",
    "true",
    "short",
  ];
  return before.map((affix) => `${affix}${name}`);
}
