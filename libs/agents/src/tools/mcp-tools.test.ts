import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { InfrastructureError } from "../errors.ts";
import { mcpServerSchema } from "./mcp-config.ts";
import { openMcpTools } from "./mcp-tools.ts";
import type { Tool } from "./tool.ts";

const SERVER = path.join(import.meta.dirname, "testing-mcp-server.ts");
const signal = new AbortController().signal;
const closes: (() => Promise<void>)[] = [];
const context = {
  filesFolder: import.meta.dirname,
  secrets: { HONE_TOOL_KEY: "secret" },
  onClose: (close: () => Promise<void>) => closes.push(close),
};
const open = (server: Record<string, unknown>) =>
  openMcpTools({ test: mcpServerSchema.parse(server) }, context);
const toolOf = (tools: readonly Tool[], name: string) =>
  tools.find((tool) => tool.name === name) ?? assert.fail(`no tool ${name}`);
const call = async (tools: readonly Tool[], name: string, args: Record<string, unknown>) =>
  toolOf(tools, name).call(args, { state: undefined, signal, wait: (work) => work() });

describe("tools of servers that speak the Model Context Protocol", () => {
  after(async () => {
    for (const close of closes) await close();
  });

  describe("over standard input and output", () => {
    let tools: Tool[];
    before(async () => {
      tools = await open({ command: process.execPath, args: [SERVER] });
    });

    test("have the names, descriptions and schemas of the server", () => {
      const add = toolOf(tools, "add");
      assert.equal(add.description, "Adds two numbers");
      assert.deepEqual(add.parameters.required, ["a", "b"]);
    });

    test("answer with the server's text", async () => {
      assert.equal(await call(tools, "add", { a: 2, b: 3 }), "5");
    });

    test("tell the model what the server says went wrong", async () => {
      await assert.rejects(call(tools, "fail", {}), (error) => {
        assert.ok(!(error instanceof InfrastructureError));
        return error instanceof Error && /nothing works/.test(error.message);
      });
    });

    test("a server that dies is a failure outside the agent, and another one is started at the next call", async () => {
      await assert.rejects(call(tools, "die", {}), InfrastructureError);
      assert.equal(await call(tools, "add", { a: 1, b: 1 }), "2");
    });

    test("those that are selected are there, and no others", async () => {
      const selected = await open({ command: process.execPath, args: [SERVER], select: ["add"] });
      assert.deepEqual(
        selected.map(({ name }) => name),
        ["add"],
      );
      await assert.rejects(
        open({ command: process.execPath, args: [SERVER], select: ["sub"] }),
        /must have each tool selected: current value is sub/,
      );
    });
  });

  describe("over HTTP", () => {
    let server: Server;
    let url: string;
    const seen: (string | undefined)[] = [];
    before(async () => {
      server = createServer(async (request, response) => {
        seen.push(request.headers.authorization);
        const mcp = new McpServer({ name: "test", version: "1" });
        mcp.registerTool("double", { inputSchema: { a: z.number() } }, ({ a }) => ({
          content: [{ type: "text", text: String(2 * a) }],
        }));
        const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
        await mcp.connect(transport as Parameters<typeof mcp.connect>[0]);
        await transport.handleRequest(request, response);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const address = server.address();
      url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/mcp`;
    });
    after(() => server.close());

    test("answer, and get their secrets from the environment", async () => {
      const tools = await open({ url, headersFromEnv: { authorization: "HONE_TOOL_KEY" } });
      assert.equal(await call(tools, "double", { a: 21 }), "42");
      assert.ok(seen.length > 0 && seen.every((value) => value === "secret"));
    });

    test("only variables for tools can be named", async () => {
      assert.throws(() => mcpServerSchema.parse({ url, headersFromEnv: { a: "HONE_DATABASE_URL" } }));
      await assert.rejects(
        open({ url, headersFromEnv: { a: "HONE_TOOL_NONE" } }),
        /no variable HONE_TOOL_NONE/,
      );
    });
  });

  test("a server that cannot be reached is a failure outside the agent", async () => {
    await assert.rejects(open({ url: "http://127.0.0.1:1/mcp" }), InfrastructureError);
    await assert.rejects(open({ command: "/nowhere/at-all" }), InfrastructureError);
  });
});
