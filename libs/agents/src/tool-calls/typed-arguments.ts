/** Reads arguments that are written as plain text: those that are strings in their schema stay strings, others are JSON. */

import { parseJson } from "@hone/core";
import { isObject, type ToolSchema } from "./tool-call.ts";

/** @param readOther reads a value that is no JSON; it returns undefined when it cannot. Absent = such a value stays a text. */
export function typedArgument(
  tools: readonly ToolSchema[],
  toolName: string,
  name: string,
  text: string,
  readOther?: (text: string) => unknown,
): unknown {
  const properties = tools.find((tool) => tool.name === toolName)?.parameters.properties;
  const schema = isObject(properties) ? properties[name] : undefined;
  const type = isObject(schema) ? schema.type : undefined;
  // Without a schema, the text is kept.
  if (type === undefined || type === "string") return text;
  try {
    return parseJson(text.trim());
  } catch {
    // The check against the schema reports what is wrong.
    const value = readOther?.(text);
    return value === undefined ? text : value;
  }
}
