/** Arguments that are written as plain texts: what their schema calls a text stays one, the rest is read as JSON. */

import { parseJson } from "@hone/core";
import { isObject, type ToolSchema } from "./tool-call.ts";

export function typedArgument(
  tools: readonly ToolSchema[],
  toolName: string,
  name: string,
  text: string,
): unknown {
  const properties = tools.find((tool) => tool.name === toolName)?.parameters.properties;
  const schema = isObject(properties) ? properties[name] : undefined;
  const type = isObject(schema) ? schema.type : undefined;
  // Without a schema nobody knows better than the text itself.
  if (type === undefined || type === "string") return text;
  try {
    return parseJson(text.trim());
  } catch {
    // The check against the schema says what is wrong with it.
    return text;
  }
}
