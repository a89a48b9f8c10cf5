/**
 * The tool `mathlighteval_reward` of ChatLearn: tells the model whether an answer equals the row's right answer, by the rules
 * of the judge `math`. It gives no reward itself: the judges of the run do.
 */

import { defineTool, groundTruthOfRow, type Tool } from "@hone/agents";
import { isSameAnswer } from "@hone/rl";
import { z } from "zod";

export const mathRewardConfigSchema = z.strictObject({});

export function makeMathRewardTool(): Tool {
  return defineTool<string>({
    name: "mathlighteval_reward",
    description: "Checks a final answer and says whether it is correct.",
    parameters: {
      type: "object",
      properties: { answer: { type: "string", description: "The final answer alone, without \\boxed{}" } },
      required: ["answer"],
    },
    open: ({ task }) => groundTruthOfRow(task),
    call({ answer }, { state: groundTruth }) {
      const isRight = isSameAnswer(String(answer), groundTruth);
      return {
        text: isRight ? "The answer is correct." : "The answer is wrong.",
        metrics: { answers_checked: 1, answers_checked_right: isRight ? 1 : 0 },
      };
    },
  });
}
