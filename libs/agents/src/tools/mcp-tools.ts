/**
 * Tools of servers that speak the Model Context Protocol, over standard input and output or over HTTP.
 *
 * M1: one connection per server and configuration, shared by all rollouts; one that breaks is made anew at the next call.
 * M2: what the server says of a call is the call's answer; a server that cannot be reached is a failure outside the agent.
 */

import { describeError, TerminalError } from "@hone/core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { InfrastructureError } from "../errors.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { defineTool, type Tool, type ToolBuildContext } from "./tool.ts";

const CONNECT_DEADLINE_MS = 20_000;

/**
 * Connects to the servers and lists their tools.
 * @throws {InfrastructureError} when one cannot be reached.
 */
export async function openMcpTools(
  servers: Readonly<Record<string, McpServerConfig>>,
  context: ToolBuildContext,
): Promise<Tool[]> {
  const tools = await Promise.all(
    Object.entries(servers).map(([name, config]) => {
      const server = new McpServer(name, config, context.secrets);
      context.onClose(() => server.close());
      return server.tools();
    }),
  );
  return tools.flat();
}

class McpServer {
  readonly #name: string;
  readonly #config: McpServerConfig;
  readonly #secrets: ToolBuildContext["secrets"];
  #connecting: Promise<Client> | undefined;

  constructor(name: string, config: McpServerConfig, secrets: ToolBuildContext["secrets"]) {
    this.#name = name;
    this.#secrets = secrets;
    this.#config = config;
  }

  async tools(): Promise<Tool[]> {
    const { select, deadlineMs } = this.#config;
    const listed = await this.#ask("list the tools", (client) =>
      client.listTools({}, { timeout: CONNECT_DEADLINE_MS }),
    );
    const missing = select?.find((name) => !listed.tools.some((tool) => tool.name === name));
    if (missing !== undefined) {
      throw new TerminalError(
        "UNKNOWN_TOOL",
        `Cannot use the server ${this.#name} as it must have each tool selected: current value is ${missing}`,
      );
    }
    return listed.tools
      .filter(({ name }) => select === undefined || select.includes(name))
      .map(({ name, description, inputSchema }) =>
        defineTool({
          name,
          description: description ?? "",
          parameters: inputSchema,
          deadlineMs,
          call: (args, { signal }) => this.#call(name, args, signal),
        }),
      );
  }

  async close(): Promise<void> {
    const connecting = this.#connecting;
    this.#connecting = undefined;
    await connecting?.then(
      (client) => client.close(),
      () => undefined,
    );
  }

  async #call(name: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<string> {
    const { deadlineMs } = this.#config;
    const result = await this.#ask(`call ${name}`, (client) =>
      client.callTool({ name, arguments: { ...args } }, undefined, { signal, timeout: deadlineMs }),
    );
    const content = Array.isArray(result.content) ? (result.content as readonly ContentPart[]) : [];
    const text = content
      .map((part) => (part.type === "text" ? (part.text ?? "") : `[${part.type}]`))
      .join("\n");
    if (result.isError === true) throw new ToolServerError(text);
    return text;
  }

  /** M2 */
  async #ask<T>(action: string, ask: (client: Client) => Promise<T>): Promise<T> {
    try {
      return await ask(await this.#client());
    } catch (error) {
      if (error instanceof TerminalError) throw error;
      // What the server itself answers is for the model; all else is the connection.
      if (error instanceof McpError && !CONNECTION_ERRORS.has(error.code)) {
        throw new ToolServerError(error.message, { cause: error });
      }
      this.#connecting = undefined;
      throw new InfrastructureError(action, `the server ${this.#name} must answer`, describeError(error), {
        cause: error,
      });
    }
  }

  #client(): Promise<Client> {
    this.#connecting ??= this.#connect();
    return this.#connecting;
  }

  async #connect(): Promise<Client> {
    const client = new Client({ name: "hone", version: "1" });
    client.onclose = () => {
      this.#connecting = undefined; // M1
    };
    await client.connect(transportOf(this.#config, this.#secrets), { timeout: CONNECT_DEADLINE_MS });
    return client;
  }
}

interface ContentPart {
  readonly type: string;
  readonly text?: string;
}

/** What a server says went wrong; the model is told. */
class ToolServerError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("TOOL_SERVER", message, options);
  }
}

const CONNECTION_ERRORS: ReadonlySet<number> = new Set([
  ErrorCode.ConnectionClosed,
  ErrorCode.RequestTimeout,
]);

function transportOf(config: McpServerConfig, secrets: ToolBuildContext["secrets"]): Transport {
  if ("command" in config) {
    const { command, args, env } = config;
    return new StdioClientTransport({ command, args, env, stderr: "ignore" });
  }
  const headers = Object.entries(config.headersFromEnv).map(([name, variable]) => {
    const value = secrets[variable];
    if (value !== undefined) return [name, value];
    throw new TerminalError(
      "NO_SECRET",
      `Cannot connect to ${config.url} as its header ${name} is taken from the environment of agent-rollout: current value is no variable ${variable}`,
    );
  });
  const transport = new StreamableHTTPClientTransport(new URL(config.url), {
    requestInit: { headers: Object.fromEntries(headers) as Record<string, string> },
  });
  // Its optional members are typed as possibly undefined, which this compiler tells apart.
  return transport as Transport;
}
