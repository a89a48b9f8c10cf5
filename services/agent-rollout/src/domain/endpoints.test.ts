import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { Outcome } from "@hone/core";
import "./built-ins.ts";
import { Endpoints } from "./endpoints.ts";
import { lakeJob, play, rowOfLakeJob, writes } from "./testing/lake-rollouts.ts";

describe("a model behind an OpenAI-compatible API", () => {
  /** Starts a server that gives the test's answers one after the other, and keeps the requests. */
  async function startApi(answers: { status?: number; content?: string | null; finish?: string }[]) {
    const asked: { key: string | undefined; url: string | undefined; body: Record<string, unknown> }[] = [];
    const server = createServer(async (request, response) => {
      let text = "";
      for await (const chunk of request) text += String(chunk);
      const { status = 200, content = "1", finish = "stop" } = answers[asked.length] ?? {};
      asked.push({ key: request.headers.authorization, url: request.url, body: JSON.parse(text) });
      response.writeHead(status, { "content-type": "application/json" });
      response.end(
        JSON.stringify({ choices: [{ message: { role: "assistant", content }, finish_reason: finish }] }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return {
      asked,
      baseUrl: `http://127.0.0.1:${port}/v1/`,
      [Symbol.asyncDispose]: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    };
  }
  const endpointJob = (baseUrl: string, row: Record<string, unknown>) =>
    rowOfLakeJob(row, {
      endpoint: { baseUrl, model: "outside", keyVariable: "HONE_ENDPOINT_KEY", concurrency: 2 },
    });
  const runOutside = (baseUrl: string, row: Record<string, unknown> = { prompt: "2,2" }) =>
    play(endpointJob(baseUrl, row), writes("never asked"), {
      endpoints: new Endpoints({ HONE_ENDPOINT_KEY: "k", HONE_ENDPOINT_KEY_HOSTS: "127.0.0.1" }),
    });

  test("is asked for text, and the record has turns but no tokens", async () => {
    await using api = await startApi([{ content: "1,1" }]);
    const record = await runOutside(api.baseUrl);
    assert.equal(record.outcome, Outcome.completed);
    assert.deepEqual(record.samples, []);
    const [turn] = record.turns;
    assert.deepEqual([turn?.responseText, turn?.sampledBegin, turn?.sampledEnd], ["1,1", 0, 0]);
    assert.deepEqual(record.metadata.endpoint, { baseUrl: api.baseUrl, model: "outside" });
    const [{ key, url, body } = assert.fail("not asked")] = api.asked;
    assert.deepEqual([key, url], ["Bearer k", "/v1/chat/completions"]);
    const { messages, model, max_tokens: maxTokens } = body;
    assert.deepEqual(messages, [{ role: "user", content: "2,2" }]);
    assert.deepEqual([model, maxTokens], ["outside", lakeJob().sampling.maxNewTokens]);
  });

  test("ends the rollout as truncated when its answer is cut off", async () => {
    await using api = await startApi([{ content: "1", finish: "length" }]);
    assert.equal((await runOutside(api.baseUrl)).outcome, Outcome.truncated);
  });

  test("is asked again when it is busy, and ends the rollout as infra_failed when it refuses", async () => {
    await using api = await startApi([{ status: 429 }, { status: 503 }, { content: "1" }]);
    assert.equal((await runOutside(api.baseUrl)).outcome, Outcome.completed);
    assert.equal(api.asked.length, 3);
    await using closed = await startApi([{ status: 401 }]);
    const record = await runOutside(closed.baseUrl);
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /status 401/);
    assert.equal(closed.asked.length, 1);
  });

  test("ends the rollout with the variable's name when its key is missing", async () => {
    const record = await play(endpointJob("http://127.0.0.1:1/v1", { prompt: "1" }), writes(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /HONE_ENDPOINT_KEY/);
  });
});
