import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually, temporaryFolder } from "@hone/testing";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { runToEnd } from "../support/follow.ts";
import { startStack, type TestStack } from "../support/stack.ts";
import { saveTinyModel } from "../support/tiny-model.ts";

/*
 * The trace of a rollout goes on outside Hone: a program, an agent's server, a server of tools and a judge's server are told the
 * span that asks them. Within Hone, a rollout is linked to where its task came from, an evaluation to its rollouts, and the
 * load of a version stands below its publication.
 */

const RUN_DEADLINE_MS = 120_000;
const ROWS = 2;
const GROUP_SIZE = 2;

/** Asks the model once, and reports the trace that its environment names. */
const PROGRAM = `
import { writeFile } from "node:fs/promises";

const { OPENAI_BASE_URL, OPENAI_API_KEY, HONE_MODEL, HONE_RESULT_FILE, TRACEPARENT } = process.env;
const asked = await fetch(OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { "content-type": "application/json", authorization: "Bearer " + OPENAI_API_KEY },
  body: JSON.stringify({ model: HONE_MODEL, messages: [{ role: "user", content: "Hello" }] }),
});
if (!asked.ok) throw new Error(await asked.text());
await writeFile(HONE_RESULT_FILE, JSON.stringify({ traceparent: TRACEPARENT }));
`;

/** Calls a tool of an MCP server, then asks the model. */
const TOOL_AGENT = `
import { buildToolbox, defineAgent, promptOfRow, toLangChainMessages, toolConfigShape } from "@hone/agents";
import { z } from "zod";

const caller = defineAgent({
  configSchema: z.strictObject(toolConfigShape),
  needsEnvironment: false,
  needsRow: true,
  buildGraph: (config, context) => buildToolbox(config, context),
  async run(toolbox, rollout) {
    const tools = rollout.openTools(toolbox);
    await rollout.model.invoke(toLangChainMessages(promptOfRow(rollout.task)));
    const [reply] = await tools.answerAll([
      { id: "1", type: "function", function: { name: "note", arguments: {} } },
    ]);
    return { metadata: { reply: reply?.text } };
  },
});
export const agents = { caller };
`;

interface Span {
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Trace {
  readonly traceId: string;
  readonly spans: readonly Span[];
}

describe("traces beyond a rollout's own services", { timeout: 4 * RUN_DEADLINE_MS }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let server: Server;
  let url: string;
  let stack: TestStack;
  /** Of the requests to each path of the test's server. */
  const heard = new Map<string, string[]>();
  const hear = (path: string, traceparent: unknown) =>
    heard.set(path, [...(heard.get(path) ?? []), String(traceparent)]);
  const answerAsTools = async (request: IncomingMessage, response: ServerResponse, body: unknown) => {
    const mcp = new McpServer({ name: "notes", version: "1" });
    mcp.registerTool("note", { inputSchema: {} }, (_args, { _meta }) => {
      hear("/mcp", _meta?.traceparent);
      return { content: [{ type: "text", text: "noted" }] };
    });
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await mcp.connect(transport as Parameters<typeof mcp.connect>[0]);
    await transport.handleRequest(request, response, body);
  };

  before(async () => {
    folder = await temporaryFolder("traces");
    server = createServer(async (request, response) => {
      const { url: asked = "", headers } = request;
      const body: unknown = JSON.parse(await bodyOf(request));
      if (asked === "/mcp") {
        await answerAsTools(request, response, body);
        return;
      }
      hear(asked, headers.traceparent);
      if (asked === "/agent") await askModel((body as { session: Session }).session);
      const answer = asked === "/judge" ? { score: (heard.get(asked)?.length ?? 0) % 2 } : {};
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const files = path.join(folder.path, "files");
    await mkdir(files);
    const rows = Array.from({ length: ROWS }, (_, i) => JSON.stringify({ prompt: `Where is ${i}?` }));
    await writeFile(path.join(files, "rows.jsonl"), `${rows.join("\n")}\n`);
    await writeFile(path.join(files, "program.mjs"), PROGRAM);
    await writeFile(path.join(files, "caller.ts"), TOOL_AGENT);
    await saveTinyModel(path.join(folder.path, "model"));
    const env = { HONE_FILES: files, HONE_MODEL_FOLDERS: folder.path };
    stack = await startStack({ env });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    server?.closeAllConnections();
    server?.close();
    await folder?.[Symbol.asyncDispose]();
  });

  /** Trains one step with an agent. */
  async function trained(name: string, agent: unknown): Promise<string> {
    const rows = { source: "jsonl", path: "rows.jsonl" };
    const run = {
      name,
      seed: 3,
      model: { path: path.join(folder.path, "model") },
      dataset: { train: rows, eval: rows },
      agent,
      rollout: {
        tasksPerStep: ROWS,
        groupSize: GROUP_SIZE,
        maxContextTokens: 256,
        sampling: { temperature: 1, maxNewTokens: 4 },
      },
      judge: [{ kind: "http", url: `${url}/judge` }],
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 }, eval: { modes: ["sampled"] } },
    };
    return (await runToEnd(stack, run, { deadlineMs: RUN_DEADLINE_MS })).runId;
  }

  /** The trace of a rollout, once it has a span of each of these names. */
  async function traceOf(runId: string, names: readonly string[]): Promise<Trace> {
    return traceAt(`/api/runs/${runId}/rollouts/train.1.0.0/trace`, names);
  }

  function traceAt(where: string, names: readonly string[]): Promise<Trace> {
    return eventually(
      `the spans ${names} of ${where}`,
      async () => {
        const answer = await stack.page(where);
        if (!answer.ok) return false;
        const trace = (await answer.json()) as Trace;
        return names.every((name) => trace.spans.some((span) => isNamed(span, name))) && trace;
      },
      { deadlineMs: 60_000 },
    );
  }

  /** The traceparents that a path of the test's server was told, of one trace. */
  const heardIn = (path: string, { traceId }: Trace) =>
    (heard.get(path) ?? []).filter((traceparent) => traceparent.startsWith(`00-${traceId}-`));

  test("a program learns the span of its attempt by TRACEPARENT, and a judge's server that of its grading", async () => {
    const runId = await trained("program", { command: ["node", "program.mjs"] });
    const trace = await traceOf(runId, ["invoke_agent", "judge", "train"]);
    const view = await (await stack.page(`/api/runs/${runId}/rollouts/train.1.0.0`)).text();
    assert.ok(view.includes(`00-${trace.traceId}-${spanOf(trace, "invoke_agent").spanId}-01`), view);
    assert.deepEqual(heardIn("/judge", trace), [traceparentOf(trace, "judge")]);
  });

  test("an agent's server learns the span of its attempt by the request's header", async () => {
    const trace = await traceOf(await trained("server", { endpoint: `${url}/agent` }), [
      "invoke_agent",
      "train",
    ]);
    assert.deepEqual(heardIn("/agent", trace), [traceparentOf(trace, "invoke_agent")]);
  });

  test("a server of tools learns the span of each call by the metadata of the request", async () => {
    const config = { mcpServers: { notes: { url: `${url}/mcp` } } };
    const runId = await trained("tools", { name: "caller", modules: ["caller.ts"], config });
    const trace = await traceOf(runId, ["execute_tool", "train"]);
    assert.deepEqual(heardIn("/mcp", trace), [traceparentOf(trace, "execute_tool note")]);
  });

  test("dataset's part, the publication and the loads of versions, and evaluations are one hop away", async () => {
    const runId = await trained("links", { endpoint: `${url}/agent` });
    const rollout = await traceOf(runId, ["rollout", "train"]);
    const [asked] = spanOf(rollout, "rollout").links;
    const step = await traceAt(`/api/traces/${asked?.traceId}`, [
      "step.publish",
      "engine.load",
      "dataset.batch",
    ]);
    const batch = spanOf(step, "step.batch");
    assert.equal(batch.spanId, asked?.spanId);
    assert.equal(spanOf(step, "dataset.batch").parentSpanId, batch.spanId);
    const publish = spanOf(step, "step.publish");
    const load = spanOf(step, "engine.load");
    assert.equal(load.parentSpanId, publish.spanId);
    assert.equal(load.attributes["hone.policy.version"], 1);
    assert.ok(spanOf(step, "step").links.some(({ traceId }) => traceId === rollout.traceId));

    const held = await traceAt(`/api/runs/${runId}/rollouts/eval.1.0.0/trace`, ["rollout", "judge"]);
    const [from] = spanOf(held, "rollout").links;
    const evaluation = await traceAt(`/api/traces/${from?.traceId}`, ["evaluate", "dataset.batch"]);
    const evaluate = spanOf(evaluation, "evaluate");
    assert.equal(evaluate.spanId, from?.spanId);
    const judged = { traceId: held.traceId, spanId: spanOf(held, "judge").spanId };
    assert.ok(
      evaluate.links.some((link) => link.traceId === judged.traceId && link.spanId === judged.spanId),
    );
    assert.equal(evaluate.links.length, ROWS);
  });
});

/** A session as an agent's server is told it. */
interface Session {
  readonly openaiBaseUrl: string;
  readonly key: string;
  readonly model: string;
}

async function askModel({ openaiBaseUrl, key, model }: Session): Promise<void> {
  const answer = await fetch(`${openaiBaseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
  });
  assert.ok(answer.ok, await answer.text());
}

/** Whether a span has this name, whatever agent, model or tool its name ends with. */
const isNamed = (span: Span, name: string) => span.name === name || span.name.startsWith(`${name} `);

function spanOf({ traceId, spans }: Trace, name: string): Span {
  const found = spans.find((span) => isNamed(span, name));
  return found ?? assert.fail(`${traceId} has no span ${name}: ${spans.map((span) => span.name)}`);
}

const traceparentOf = (trace: Trace, name: string) => `00-${trace.traceId}-${spanOf(trace, name).spanId}-01`;

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString() || "null";
}
