import assert from "node:assert/strict";
import { access } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { BoundKeys, CodeGate } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { temporaryFolder } from "@hone/testing";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";
import { InfrastructureError } from "../errors.ts";
import { mcpServerSchema } from "./mcp-config.ts";
import { openMcpTools } from "./mcp-tools.ts";
import type { Tool, ToolBuildContext } from "./tool.ts";

const SERVER = path.join(import.meta.dirname, "testing", "mcp-server.ts");
const signal = new AbortController().signal;
const closes: (() => Promise<void>)[] = [];
const NODE = path.basename(process.execPath);
const gate = new CodeGate({
  filesFolder: import.meta.dirname,
  commandEnvironment: { PATH: path.dirname(process.execPath) },
});
const keysFor = (hosts: string) =>
  new BoundKeys("HONE_TOOL_", { HONE_TOOL_KEY: "secret", HONE_TOOL_KEY_HOSTS: hosts }, "agent-rollout");
const context = {
  filesFolder: import.meta.dirname,
  gate,
  secrets: keysFor("127.0.0.1"),
  onClose: (close: () => Promise<void>) => closes.push(close),
};
const open = (server: Record<string, unknown>, more: Partial<ToolBuildContext> = {}) =>
  openMcpTools({ test: mcpServerSchema.parse(server) }, { ...context, ...more });
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
      tools = await open({ command: NODE, args: [SERVER] });
    });

    test("have the names, descriptions and schemas of the server", () => {
      const add = toolOf(tools, "add");
      assert.equal(add.description, "Adds two numbers");
      assert.deepEqual(add.parameters.required, ["a", "b"]);
    });

    test("answer with the server's text", async () => {
      assert.equal(await call(tools, "add", { a: 2, b: 3 }), "5");
    });

    test("pass the server's error message on to the model", async () => {
      await assert.rejects(call(tools, "fail", {}), (error) => {
        assert.ok(!(error instanceof InfrastructureError));
        return error instanceof Error && /nothing works/.test(error.message);
      });
    });

    test("a server that dies is a failure outside the agent, and another one is started at the next call", async () => {
      await assert.rejects(call(tools, "die", {}), InfrastructureError);
      assert.equal(await call(tools, "add", { a: 1, b: 1 }), "2");
    });

    test("are only those that are selected", async () => {
      const selected = await open({ command: NODE, args: [SERVER], select: ["add"] });
      assert.deepEqual(
        selected.map(({ name }) => name),
        ["add"],
      );
      await assert.rejects(
        open({ command: NODE, args: [SERVER], select: ["sub"] }),
        /has no tool sub, which is selected/,
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

    test("answer calls, and get their secrets from the environment", async () => {
      const tools = await open({ url, headersFromEnv: { authorization: "HONE_TOOL_KEY" } });
      assert.equal(await call(tools, "double", { a: 21 }), "42");
      assert.ok(seen.length > 0 && seen.every((value) => value === "secret"));
    });

    test("can use only secrets from variables whose names begin with HONE_TOOL_", async () => {
      assert.throws(() => mcpServerSchema.parse({ url, headersFromEnv: { a: "HONE_DATABASE_URL" } }));
      await assert.rejects(
        open({ url, headersFromEnv: { a: "HONE_TOOL_NONE" } }),
        /HONE_TOOL_NONE, which is not set for agent-rollout/,
      );
    });

    test("secrets are sent only to the hosts that they are bound to, and not after a redirect", async () => {
      const asked = { url, headersFromEnv: { authorization: "HONE_TOOL_KEY" } };
      seen.length = 0;
      await assert.rejects(
        open(asked, { secrets: keysFor("mcp.example.com") }),
        /HONE_TOOL_KEY may be sent to https:\/\/mcp\.example\.com only.*add 127\.0\.0\.1:\d+ to HONE_TOOL_KEY_HOSTS/,
      );
      assert.deepEqual(seen, []);
      const redirecting = createServer((_request, response) =>
        response.writeHead(307, { location: url }).end(),
      );
      await new Promise<void>((resolve) => redirecting.listen(0, "127.0.0.1", resolve));
      const { port } = redirecting.address() as AddressInfo;
      await assert.rejects(open({ ...asked, url: `http://127.0.0.1:${port}/mcp` }), InfrastructureError);
      redirecting.close();
      assert.deepEqual(seen, []);
    });

    test("an endless answer is read only up to a limit", { timeout: 20_000 }, async () => {
      const closed = Promise.withResolvers<void>();
      let sentBytes = 0;
      const endless = createServer((_request, response) => {
        response.once("close", closed.resolve);
        response.writeHead(200, { "content-type": "application/json" });
        const send = () => {
          do sentBytes += 65_536;
          while (!response.destroyed && response.write(" ".repeat(65_536)));
        };
        response.on("drain", send);
        send();
      });
      await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
      const { port } = endless.address() as AddressInfo;
      try {
        await assert.rejects(open({ url: `http://127.0.0.1:${port}/mcp` }), (error) => {
          assert.ok(error instanceof InfrastructureError);
          return /longer than the limit of 16777216 bytes/.test(error.message);
        });
        await closed.promise;
        // Buffers on the way hold some more bytes.
        assert.ok(sentBytes < 64 * 1024 * 1024, `${sentBytes} bytes`);
      } finally {
        endless.closeAllConnections();
        endless.close();
      }
    });

    test("a server is not asked when its agent is only checked", async () => {
      seen.length = 0;
      assert.deepEqual(await open({ url }, { isCheck: true }), []);
      assert.deepEqual(seen, []);
    });
  });

  test("a server that cannot be reached is a failure outside the agent", async () => {
    await assert.rejects(open({ url: "http://127.0.0.1:1/mcp" }), InfrastructureError);
  });

  describe("are started only as the gate allows", () => {
    let folder: Awaited<ReturnType<typeof temporaryFolder>>;
    before(async () => {
      folder = await temporaryFolder("mcp-gate");
    });
    after(() => folder[Symbol.asyncDispose]());
    /** A program that leaves a file behind when it runs. */
    const marking = (mark: string) => ({
      command: NODE,
      args: ["-e", "require('node:fs').writeFileSync(process.argv[1], '')", path.join(folder.path, mark)],
    });
    const exists = (mark: string) =>
      access(path.join(folder.path, mark)).then(
        () => true,
        () => false,
      );

    test("not if the operator does not allow programs, and not when the agent is only checked", async () => {
      const refusing = new CodeGate({ filesFolder: import.meta.dirname });
      for (const isCheck of [true, false]) {
        await assert.rejects(open(marking("refused"), { gate: refusing, isCheck }), (error) => {
          assert.ok(error instanceof InvalidInputError);
          assert.equal(error.path, "mcpServers.test.command");
          assert.match(error.message, /HONE_ALLOW_COMMANDS=yes/);
          return true;
        });
      }
      assert.deepEqual(await open(marking("checked"), { isCheck: true }), []);
      assert.deepEqual([await exists("refused"), await exists("checked")], [false, false]);
      // The program is not a server, but where it is allowed, it runs.
      await assert.rejects(open(marking("started")), InfrastructureError);
      assert.equal(await exists("started"), true);
    });

    test("not if the program is outside HONE_FILES or does not exist", async () => {
      await assert.rejects(open({ command: "/bin/sh" }), /mcpServers\.test\.command/);
      await assert.rejects(open({ command: "../../../../bin/sh" }), /mcpServers\.test\.command/);
      await assert.rejects(open({ command: "no-such-program-of-hone" }), /is not a program in the PATH/);
    });
  });
});
