/**
 * What a call demands of its answer beyond its messages: a format, or a call of a tool.
 *
 * D1: Sampling stays as it is, so a demand is told to the model in words, and the answer is returned as it is.
 * D2: Whether the answer meets a demand is reported: in the API's answer, in the turn's info and in the rollout's metrics.
 */

import { problemOfText } from "./response-format.ts";
import type { ReplyCheck, SessionReply, SessionRequest } from "./session-call.ts";

/** A demand in words. */
export interface ToldDemand {
  readonly text: string;
  /** Says the same to a model that was told before in its conversation. */
  readonly reminder: string;
}

const JSON_ALONE = "Write nothing before or after it, and no code fence.";

/** What the model is told; empty = nothing. */
export function demandsOf({ responseFormat, toolChoice, tools }: SessionRequest): readonly ToldDemand[] {
  const demands: ToldDemand[] = [];
  if (responseFormat !== undefined) {
    const { schema, description } = responseFormat;
    const mayCall = tools.length > 0 && toolChoice !== "none" ? " You may call tools first." : "";
    if (schema === undefined) {
      const text = `Answer with one JSON object. ${JSON_ALONE}${mayCall}`;
      demands.push({ text, reminder: text });
    } else {
      const means = description === "" ? "" : `\n${description}`;
      demands.push({
        text: `Answer with one JSON value that fits the JSON schema below. ${JSON_ALONE}${mayCall}${means}\n${JSON.stringify(schema)}`,
        reminder: `Answer with one JSON value that fits the JSON schema given before. ${JSON_ALONE}${mayCall}`,
      });
    }
  }
  const call =
    toolChoice === "required"
      ? "Call at least one tool in this answer."
      : typeof toolChoice === "object"
        ? `Call the tool ${JSON.stringify(toolChoice.name)} in this answer, and no other tool.`
        : undefined;
  if (call !== undefined) demands.push({ text: call, reminder: call });
  return demands;
}

/** Whether an answer meets what its call demanded (D2). An answer that calls tools has no format to meet. */
export function checksOf(
  { responseFormat, toolChoice }: SessionRequest,
  { text, calls }: Pick<SessionReply, "text" | "calls">,
): readonly ReplyCheck[] {
  const checks: ReplyCheck[] = [];
  if (responseFormat !== undefined && calls.length === 0) {
    checks.push({ demand: "response_format", problem: problemOfText(responseFormat, text) });
  }
  if (toolChoice === "required") {
    checks.push({
      demand: "tool_choice",
      problem: calls.length > 0 ? undefined : "the answer calls no tool",
    });
  } else if (typeof toolChoice === "object") {
    const { name } = toolChoice;
    const other = calls.find((call) => call.name !== name);
    const problem =
      calls.length === 0
        ? `the answer does not call ${name}`
        : other === undefined
          ? undefined
          : `the answer calls ${other.name} and not only ${name}`;
    checks.push({ demand: "tool_choice", problem });
  }
  return checks;
}
