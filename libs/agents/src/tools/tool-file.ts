/**
 * Reads files of tools in verl's format:
 *
 *     tools:
 *       - class_name: calculator        # a registered tool, or a Python path: its last part in snake case, without "_tool"
 *         config: { type: native }
 *         tool_schema: { type: function, function: { name, description, parameters } }
 */

import { InvalidInputError } from "@hone/core";
import { z } from "zod";
import type { Tool } from "./tool.ts";

const toolFileSchema = z.object({
  tools: z.array(
    z.object({
      class_name: z.string().min(1),
      /** Its key `type` belongs to verl and is ignored. */
      config: z.record(z.string(), z.unknown()).nullish(),
      /** The schema that the model is shown; absent = the tool's own. */
      tool_schema: z
        .object({
          type: z.literal("function").default("function"),
          function: z.object({
            name: z.string().min(1),
            description: z.string().default(""),
            parameters: z.record(z.string(), z.unknown()),
          }),
        })
        .nullish(),
    }),
  ),
});

/** @param make creates a registered tool. @throws {InvalidInputError} when the content does not fit the format. */
export async function readToolFile(
  content: Readonly<Record<string, unknown>>,
  make: (name: string, config: Readonly<Record<string, unknown>>, path: string) => Promise<readonly Tool[]>,
): Promise<Tool[]> {
  const parsed = toolFileSchema.safeParse(content);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const path = `toolFile: ${issue?.path.join(".")}`;
    const allowed = issue?.message ?? "as in verl's files";
    throw new InvalidInputError(
      `Cannot read the file of tools: \`${path}\` is wrong (${allowed}); the file begins with ${JSON.stringify(content).slice(0, 200)}`,
      { path, allowed },
    );
  }
  const made = parsed.data.tools.map(async ({ class_name, config, tool_schema }, index) => {
    const { type: _, ...own } = config ?? {};
    const path = `toolFile: tools.${index}.class_name`;
    const tools = await make(registeredName(class_name), own, path);
    if (tool_schema == null) return tools;
    const [tool, second] = tools;
    if (tool !== undefined && second === undefined) return [{ ...tool, ...tool_schema.function }];
    throw new InvalidInputError(
      `Cannot read the file of tools: \`${path}\` stands for ${tools.length} tools, and one \`tool_schema\` cannot describe them`,
      { path, allowed: "a single tool where there is a tool_schema" },
    );
  });
  return (await Promise.all(made)).flat();
}

/** The name of the registered tool: `verl.tools.search_tool.SearchTool` is `search`. */
export function registeredName(className: string): string {
  if (!className.includes(".") && !/^[A-Z]/.test(className)) return className;
  const last = className.slice(className.lastIndexOf(".") + 1);
  return last
    .replace(/Tool$/, "")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}
