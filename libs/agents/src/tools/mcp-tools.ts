/**
 * Tools of servers that speak the Model Context Protocol, over standard input and output or over HTTP.
 *
 * M1: there is one connection per server and configuration, shared by all rollouts; after it breaks, the next call makes a
 *     new one.
 * M2: an error that the server reports for a call is the call's answer; a server that cannot be reached is a failure outside
 *     the agent.
 */

import { AnswerTooLongError, boundedFetch, describeError, TerminalError } from "@hone/core";
import { traceHeaders } from "@hone/telemetry";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { ErrorCode, McpError } from "@modelcontextprotocol/sdk/types.js";
import { InfrastructureError } from "../errors.ts";
import type { McpServerConfig } from "./mcp-config.ts";
import { defineTool, type Tool, type ToolBuildContext } from "./tool.ts";

const CONNECT_DEADLINE_MS = 20_000;
/** Limit of an answer over HTTP; a model is shown far less of it (cut-answer.ts). */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Connects to the servers and lists their tools. In a check (`isCheck`) the servers are neither started nor asked, and the list
 * is empty.
 * @throws {InvalidInputError} when a program is not allowed or does not exist.
 * @throws {InfrastructureError} when a server cannot be reached.
 */
export async function openMcpTools(
  servers: Readonly<Record<string, McpServerConfig>>,
  context: ToolBuildContext,
): Promise<Tool[]> {
  const tools = await Promise.all(
    Object.entries(servers).map(async ([name, config]) => {
      const connect = await transportMaker(config, `mcpServers.${name}`, context);
      if (context.isCheck === true) return [];
      const server = new McpServer(name, config, connect);
      context.onClose(() => server.close());
      return server.tools();
    }),
  );
  return tools.flat();
}

class McpServer {
  readonly #name: string;
  readonly #config: McpServerConfig;
  readonly #transport: () => Transport;
  #connecting: Promise<Client> | undefined;

  constructor(name: string, config: McpServerConfig, transport: () => Transport) {
    this.#name = name;
    this.#transport = transport;
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
        `The server ${this.#name} has no tool ${missing}, which is selected; remove it from the selection`,
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
      client.callTool(
        // As SEP-414 of the protocol has it, a server that traces itself joins the trace of the call by its metadata.
        { name, arguments: { ...args }, _meta: traceHeaders() },
        undefined,
        { signal, timeout: deadlineMs },
      ),
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
      if (error instanceof TerminalError && !(error instanceof AnswerTooLongError)) throw error;
      // An error that the server itself reports is for the model; any other is a failure of the connection.
      if (error instanceof McpError && !CONNECTION_ERRORS.has(error.code)) {
        throw new ToolServerError(error.message, { cause: error });
      }
      this.#connecting = undefined;
      const problem = `the server ${this.#name} does not answer`;
      throw new InfrastructureError(action, problem, describeError(error), { cause: error });
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
    await client.connect(this.#transport(), { timeout: CONNECT_DEADLINE_MS });
    return client;
  }
}

interface ContentPart {
  readonly type: string;
  readonly text?: string;
}

/** An error that a server reported; the model is shown it. */
class ToolServerError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("TOOL_SERVER", message, options);
  }
}

const CONNECTION_ERRORS: ReadonlySet<number> = new Set([
  ErrorCode.ConnectionClosed,
  ErrorCode.RequestTimeout,
]);

/**
 * @param key path of the server in the agent's file, for errors.
 * @returns a function that makes a new connection at each call (M1).
 */
async function transportMaker(
  config: McpServerConfig,
  key: string,
  { gate, secrets }: ToolBuildContext,
): Promise<() => Transport> {
  if ("command" in config) {
    const { command, args, env: environment } = config;
    const allowed = await gate.program({ program: command, args, environment }, `${key}.command`);
    return () =>
      new StdioClientTransport({
        command: allowed.file,
        args: [...allowed.args],
        env: { ...allowed.environment },
        cwd: allowed.folder,
        stderr: "ignore",
      });
  }
  const { url, headersFromEnv } = config;
  const headers = Object.fromEntries(
    Object.entries(headersFromEnv).map(([name, variable]) => [
      name,
      secrets.keyFor(variable, url, `${key}.headersFromEnv.${name}`),
    ]),
  );
  // Under exactOptionalPropertyTypes the class does not match Transport: its optional members may be undefined.
  return () =>
    new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers },
      fetch: boundedFetch(MAX_ANSWER_BYTES, fetchWithoutRedirects),
    }) as Transport;
}

/** Redirects are not followed: they would send the headers to a host that they are not bound to. */
function fetchWithoutRedirects(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  return fetch(url, { ...init, redirect: "manual" });
}
