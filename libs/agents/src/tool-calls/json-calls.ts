/** Calls that are written as JSON objects: `{"name": …, "arguments": {…}}`. */

import { parseJson } from "@hone/core";
import { invalidCall, isObject, type WrittenCall } from "./tool-call.ts";

/** Names of the key that holds the arguments, in the formats that have them. */
const ARGUMENT_KEYS = ["arguments", "parameters"] as const;

/** @returns one call per text that holds one object or a list of objects. */
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

/** Some models write the arguments as a text that holds JSON, as the OpenAI API has them. */
export function argumentsOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  if (isObject(value)) return value;
  return typeof value === "string" ? jsonObject(value.trim() === "" ? "{}" : value) : undefined;
}

/** @returns undefined where the text is no JSON object. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The end of the JSON value that begins a text; undefined where none is whole. Texts in it may hold any character. */
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
