import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { Hono } from "hono";
import { ListenError } from "./errors.ts";
import { MAX_HEADER_BYTES, startHttpServer } from "./http-server.ts";

const health = new Hono().get("/livez", (c) => c.text("alive"));
const options = { host: "127.0.0.1", port: 0, health };

describe("startHttpServer()", () => {
  test("answers health from the start and the routes once they are there", async () => {
    const server = await startHttpServer(options);
    const { url } = server.address;
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    assert.equal((await fetch(`${url}/hello`)).status, 503);
    server.serve(new Hono().post("/hello", async (c) => c.text(`hello ${await c.req.text()}`)));
    const response = await fetch(`${url}/hello`, { method: "POST", body: "you" });
    assert.equal(await response.text(), "hello you");
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    await server.close(AbortSignal.timeout(1_000));
    await assert.rejects(fetch(`${url}/livez`));
  });

  test("cuts a stream that does not end when the signal aborts", async () => {
    const server = await startHttpServer(options);
    server.serve(
      new Hono().get(
        "/endless",
        () => new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode("x")) })),
      ),
    );
    const response = await fetch(`${server.address.url}/endless`);
    const reading = response.text();
    const closing = new AbortController();
    const closed = server.close(closing.signal);
    closing.abort();
    await Promise.all([closed, assert.rejects(reading)]);
  });

  test("cuts clients that never finish their headers, and answers the others meanwhile", async () => {
    const server = await startHttpServer({ ...options, headersTimeoutMs: 200 });
    const cut = Array.from({ length: 20 }, async () => {
      const socket = connect(server.address.port, server.address.host);
      socket.write("GET /livez HTTP/1.1\r\nhost: x\r\nx-slow: ");
      let answer = "";
      socket.on("data", (chunk) => {
        answer += chunk;
      });
      await once(socket, "close");
      return answer;
    });
    assert.equal((await fetch(`${server.address.url}/livez`)).status, 200);
    for (const answer of await Promise.all(cut)) assert.match(answer, /^HTTP\/1.1 408 /);
    await server.close(AbortSignal.abort());
  });

  test("refuses headers beyond their limit", async () => {
    const server = await startHttpServer(options);
    const headers = { "x-huge": "h".repeat(MAX_HEADER_BYTES) };
    assert.equal((await fetch(`${server.address.url}/livez`, { headers })).status, 431);
    await server.close(AbortSignal.abort());
  });

  test("says which address it cannot have", async () => {
    const first = await startHttpServer(options);
    await assert.rejects(
      startHttpServer({ ...options, port: first.address.port }),
      (error) => error instanceof ListenError && error.message.includes(String(first.address.port)),
    );
    await first.close(AbortSignal.abort());
  });
});
