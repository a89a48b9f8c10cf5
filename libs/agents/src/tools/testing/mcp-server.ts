/** A server of tools for tests, over standard input and output. */

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "test", version: "1" });
const text = (content: string) => ({ content: [{ type: "text" as const, text: content }] });
const inputSchema = { a: z.number(), b: z.number() };
server.registerTool("add", { description: "Adds two numbers", inputSchema }, ({ a, b }) =>
  text(String(a + b)),
);
server.registerTool("fail", { inputSchema: {} }, () => ({ ...text("nothing works"), isError: true }));
server.registerTool("die", { inputSchema: {} }, () => process.exit(1));
await server.connect(new StdioServerTransport());
