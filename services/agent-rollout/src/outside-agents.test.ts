import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { OutsideAccess } from "@hone/agents";
import { BoundKeys, CodeGate, parseRunFile } from "@hone/config";
import { Outcome } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { ChatRenderer } from "@hone/tokenizer";
import { chatmlTokenizer } from "@hone/tokenizer/testing";
import "./domain/built-ins.ts";
import { rowJob, runJob, WritingPolicy } from "./domain/testing/row-rollouts.ts";
import { type ServedSessions, serveSessions } from "./serve-sessions.ts";

/* Plays commands and endpoints through real sessions: the example of docs/sessions.md, and servers that play or fail. */

const PAGE = path.join(import.meta.dirname, "../../../docs/sessions.md");
const OUTSIDE: OutsideAccess = {
  keys: new BoundKeys(
    "HONE_ENDPOINT_KEY",
    { HONE_ENDPOINT_KEY_AGENT: "agent-key", HONE_ENDPOINT_KEY_AGENT_HOSTS: "127.0.0.1" },
    "agent-rollout",
  ),
};
const renderer = new ChatRenderer(chatmlTokenizer());
const row = { prompt: "Which season has snow?", reward_model: { ground_truth: "winter" } };

describe("external agents, through sessions", { timeout: 120_000 }, () => {
  let served: ServedSessions;
  let folder: string;
  before(async () => {
    served = await serveSessions(silentLogger());
    folder = await mkdtemp(path.join(tmpdir(), "hone-outside-"));
  });
  after(async () => {
    await served[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });
  const play = (name: string, config: Readonly<Record<string, unknown>>, policy: WritingPolicy) =>
    runJob(rowJob(name, row, { config }), renderer, policy, {
      sessions: served.sessions,
      filesFolder: folder,
      outside: OUTSIDE,
      gate: new CodeGate({
        filesFolder: folder,
        commandEnvironment: { PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}` },
      }),
    });
  const serve = async (listener: RequestListener) => {
    const server = createServer(listener).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/play`, close: () => server.close() };
  };

  test("the example of docs/sessions.md plays, and its record is one sample", async () => {
    const text = await readFile(PAGE, "utf8");
    for (const [, name = "", code = ""] of text.matchAll(/```\w+\n(?:\/\/|#) file: (\S+)\n(.*?)```/gs)) {
      await writeFile(path.join(folder, name), code);
    }
    const { agent } = parseRunFile(await readFile(path.join(folder, "seasons.yaml"), "utf8"));
    const policy = new WritingPolicy(renderer, "summer", "winter");
    const record = await play(agent.name, agent.config ?? {}, policy);
    assert.equal(record.reason, "");
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(record.metadata, { guesses: ["summer", "winter"] });
    assert.equal(record.metrics.guesses, 2);
    assert.equal(record.samples.length, 1);
    assert.equal(record.turns.at(-1)?.responseText, "winter");
    assert.equal(served.sessions.numOpen, 0);
  });

  test("neither a command nor an endpoint gets the answer, unless the run file exposes it", async () => {
    const program = `
      import { readFileSync, writeFileSync } from "node:fs";
      const all = JSON.stringify(process.env) + readFileSync(process.env.HONE_TASK_FILE, "utf8");
      writeFileSync(process.env.HONE_RESULT_FILE, JSON.stringify({ isTold: all.includes("winter"), prompt: JSON.parse(process.env.HONE_TASK).prompt }));`;
    const command = [path.basename(process.execPath), "--input-type=module", "-e", program];
    const bodies: string[] = [];
    const server = await serve(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      bodies.push(body);
      response.end("{}");
    });
    for (const exposeGroundTruth of [false, true]) {
      const policy = new WritingPolicy(renderer, "");
      const told = await play("command", { command, exposeGroundTruth }, policy);
      const prompt = [{ role: "user", content: row.prompt }];
      assert.deepEqual(told.metadata, { isTold: exposeGroundTruth, prompt });
      await play("endpoint", { endpoint: server.url, exposeGroundTruth }, policy);
      assert.equal(bodies.at(-1)?.includes("winter"), exposeGroundTruth);
      assert.ok(bodies.at(-1)?.includes(row.prompt));
    }
    server.close();
    assert.equal(bodies.length, 2);
  });

  test("an endpoint is asked again after a failure, and its answer is the result", async () => {
    let asked = 0;
    const server = await serve(async (request, response) => {
      asked++;
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      assert.equal(request.headers.authorization, "Bearer agent-key");
      if (asked === 1) return void response.writeHead(503).end("not now");
      const { task, session } = JSON.parse(Buffer.concat(chunks).toString());
      const answer = await fetch(`${session.openaiBaseUrl}/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": session.key },
        body: JSON.stringify({ model: "any", messages: task.prompt }),
      });
      const body = (await answer.json()) as { choices: { message: { content: string } }[] };
      response.end(JSON.stringify({ said: body.choices[0]?.message.content, metrics: { calls: 1 } }));
    });
    const config = { endpoint: server.url, keyVariable: "HONE_ENDPOINT_KEY_AGENT" };
    const record = await play("endpoint", config, new WritingPolicy(renderer, "winter"));
    server.close();
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.attempt, 2);
    assert.match(record.failedAttempts[0] ?? "", /answered with status 503 \(not now\)/);
    assert.deepEqual(record.metadata, { said: "winter" });
    assert.equal(record.metrics.calls, 1);
    assert.equal(record.samples.length, 1);
  });

  test("an endpoint that refuses ends as agent_failed, and one that cannot be reached as infra_failed", async () => {
    const server = await serve((_request, response) => void response.writeHead(422).end("no such game"));
    const refused = await play("endpoint", { endpoint: server.url }, new WritingPolicy(renderer, ""));
    server.close();
    assert.equal(refused.outcome, Outcome.agentFailed);
    assert.match(refused.reason, /422: no such game/);
    const away = await play(
      "endpoint",
      { endpoint: "http://127.0.0.1:1/play" },
      new WritingPolicy(renderer, ""),
    );
    assert.equal(away.outcome, Outcome.infraFailed);
    assert.equal(away.failedAttempts.length, 1);
  });
});
