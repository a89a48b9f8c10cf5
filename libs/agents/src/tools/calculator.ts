/** The tool `calculator`: returns the value of an arithmetic expression. */

import { z } from "zod";
import { evaluateExpression } from "./evaluate-expression.ts";
import { defineTool, type Tool } from "./tool.ts";

export const calculatorConfigSchema = z.strictObject({});

export function makeCalculator(): Tool {
  return defineTool({
    name: "calculator",
    description:
      "Evaluates an arithmetic expression with + - * / % ^, parentheses, pi, e and the functions sqrt, abs, floor, ceil, round, min, max, log, exp, sin, cos, tan.",
    parameters: {
      type: "object",
      properties: { expression: { type: "string", description: "Such as (3 + 4) * 12" } },
      required: ["expression"],
      additionalProperties: false,
    },
    call: ({ expression }) => formatNumber(evaluateExpression(String(expression))),
  });
}

/** Results are rounded to twelve digits, so that 0.1 + 0.2 is 0.3. */
const SIGNIFICANT_DIGITS = 12;

function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(SIGNIFICANT_DIGITS)));
}
