/** Calls that are written as JSON objects: `{"name": …, "arguments": {…}}`. */

import { parseJson } from "@hone/core";
import { invalidCall, isObject, type WrittenCall } from "./tool-call.ts";

/** Keys that hold the arguments, depending on the format. */
const ARGUMENT_KEYS = ["arguments", "parameters"] as const;

/** @returns the calls in a text that is a JSON object or a list of objects. */
export function jsonCalls(text: string): readonly WrittenCall[] {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return [invalidCall(text, "is no JSON")];
  }
  if (Array.isArray(value)) return value.map((each: unknown) => jsonCall(each, text));
  return [jsonCall(value, text)];
}

function jsonCall(value: unknown, text: string): WrittenCall {
  if (!isObject(value)) return invalidCall(text, "is no JSON object");
  const { name, id } = value;
  if (typeof name !== "string" || name === "") return invalidCall(text, 'has no "name"');
  const key = ARGUMENT_KEYS.find((each) => value[each] !== undefined);
  const given = key === undefined ? {} : argumentsOf(value[key]);
  if (given === undefined) return invalidCall(text, `has ${key} that are no JSON object`);
  return {
    kind: "call",
    name,
    arguments: given,
    ...(typeof id === "string" && id !== "" && { id }),
  };
}

/** Arguments as an object, or as a string of JSON, which some models write as the OpenAI API does. */
export function argumentsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (isObject(value)) return value;
  return typeof value === "string" ? jsonObject(value.trim() === "" ? "{}" : value) : undefined;
}

/** @returns undefined when the text is not a JSON object. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The end of the JSON value that a text begins with; undefined when it is incomplete. Brackets within strings are skipped. */
export function endOfJsonValue(text: string): number | undefined {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (isInText) {
      if (character === "\\") i++;
      else if (character === '"') isInText = false;
      continue;
    }
    if (character === '"') isInText = true;
    else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") {
      depth--;
      if (depth === 0) return i + 1;
    }
  }
  return undefined;
}
