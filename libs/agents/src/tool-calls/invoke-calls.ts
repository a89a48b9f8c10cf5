/**
 * Reads calls that are written as invocations with their arguments in tags:
 *
 *     <invoke name="f"><parameter name="a">1</parameter></invoke>
 *
 * MiniMax writes them so. DeepSeek puts `｜DSML｜` before each name and says in an attribute whether a value is a text:
 * `<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>`.
 */

import { parseJson } from "@hone/core";
import { jsonObject } from "./json-calls.ts";
import { invalidCall, type ToolSchema, type WrittenCall } from "./tool-call.ts";
import { typedArgument } from "./typed-arguments.ts";

export interface InvokeGrammar {
  /** What stands before the names of the tags. */
  readonly prefix: string;
}

interface Patterns {
  readonly begin: RegExp;
  readonly invoke: RegExp;
  readonly parameter: RegExp;
}

/** @param body the text between the marks around all calls of a block. */
export function invokeCalls(
  body: string,
  tools: readonly ToolSchema[],
  { prefix }: InvokeGrammar,
): readonly WrittenCall[] {
  const { begin, invoke, parameter } = patternsOf(prefix);
  const calls: WrittenCall[] = [];
  let rest = body;
  for (let found = invoke.exec(rest); found !== null; found = invoke.exec(rest)) {
    const [whole, name = "", inner = ""] = found;
    calls.push(callOf(name.trim(), inner, tools, parameter));
    rest = rest.slice(found.index + whole.length);
  }
  const isCutOff = begin.test(rest);
  if (isCutOff)
    calls.push(invalidCall(body, `has an <${prefix}invoke> that is not closed by </${prefix}invoke>`));
  if (calls.length > 0) return calls;
  return [invalidCall(body, `has no <${prefix}invoke name="NAME">`)];
}

function patternsOf(prefix: string): Patterns {
  // DeepSeek V4.1 writes a space between the prefix and the name of a tag.
  const space = prefix === "" ? "" : " ?";
  return {
    begin: new RegExp(`<${prefix}${space}invoke\\b`),
    invoke: new RegExp(
      `<${prefix}${space}invoke\\s+name="([^">]+)"\\s*>([\\s\\S]*?)</${prefix}${space}invoke>`,
    ),
    parameter: new RegExp(
      `<${prefix}${space}parameter\\s+name="([^">]+)"(?:\\s+string="(true|false)")?\\s*>([\\s\\S]*?)</${prefix}${space}parameter>`,
      "g",
    ),
  };
}

function callOf(name: string, inner: string, tools: readonly ToolSchema[], parameter: RegExp): WrittenCall {
  // DeepSeek V4 sometimes writes all arguments as one object.
  if (inner.trimStart().startsWith("{")) {
    const given = jsonObject(inner);
    return given === undefined
      ? invalidCall(inner, `calls ${name} with arguments that are no JSON object`)
      : { kind: "call", name, arguments: given };
  }
  const given = [...inner.matchAll(parameter)].map(([, key = "", isText, value = ""]): [string, unknown] => [
    key.trim(),
    isText === "true"
      ? value
      : isText === "false"
        ? jsonOrText(value)
        : typedArgument(tools, name, key.trim(), value),
  ]);
  return { kind: "call", name, arguments: Object.fromEntries(given) };
}

function jsonOrText(text: string): unknown {
  try {
    return parseJson(text.trim());
  } catch {
    // The check against the schema reports what is wrong.
    return text;
  }
}
