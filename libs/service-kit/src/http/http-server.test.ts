import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { delay } from "@hone/core";
import { Hono } from "hono";
import { ListenError } from "../errors.ts";
import { MAX_HEADER_BYTES, startHttpServer } from "./http-server.ts";

const health = new Hono().get("/livez", (c) => c.text("alive"));
const options = { host: "127.0.0.1", port: 0, health };

describe("startHttpServer()", () => {
  test("answers health from the start, and the routes once the service has given them", async () => {
    const server = await startHttpServer(options);
    const { url } = server.address;
    assert.equal((await fetch(`${url}/livez`)).status, 200);
    assert.equal((await fetch(`${url}/hello`)).status, 503);
    server.serve(new Hono().post("/hello", async (c) => c.text(`hello ${await c.req.text()}`)));
    const response = await fetch(`${url}/hello`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "you",
    });
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
      socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-slow: ");
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

  test("answers its probes while requests that are half sent take up all connections", async () => {
    const server = await startHttpServer({ ...options, maxConnections: 500 });
    const halves = Array.from({ length: 1_000 }, (_, i) => {
      const socket = connect(server.address.port, server.address.host);
      socket.on("error", () => undefined);
      // Half of the headers, or all of them and half of the body.
      const half = i % 2 === 0 ? "x-slow: " : "content-type: application/json\r\ncontent-length: 9\r\n\r\n{";
      socket.write(`POST /livez HTTP/1.1\r\nhost: localhost\r\n${half}`);
      return socket;
    });
    try {
      await Promise.all(halves.map((socket) => (socket.connecting ? once(socket, "connect") : undefined)));
      for (let probe = 0; probe < 10; probe++) {
        const answer = await fetch(`${server.address.url}/livez`, {
          headers: { connection: "close" },
          signal: AbortSignal.timeout(5_000),
        });
        assert.equal(answer.status, 200);
      }
    } finally {
      for (const socket of halves) socket.destroy();
      await server.close(AbortSignal.abort());
    }
  });

  test("lets requests that are being answered end, and refuses connections above the limit", async () => {
    const server = await startHttpServer({ ...options, maxConnections: 2 });
    const held = Promise.withResolvers<void>();
    server.serve(new Hono().get("/slow", async (c) => c.text(await held.promise.then(() => "done"))));
    const slow = [1, 2].map(() => fetch(`${server.address.url}/slow`).then((answer) => answer.text()));
    await delay(200);
    await assert.rejects(fetch(`${server.address.url}/livez`, { headers: { connection: "close" } }));
    held.resolve();
    assert.deepEqual(await Promise.all(slow), ["done", "done"]);
    await server.close(AbortSignal.abort());
  });

  test("refuses headers beyond their limit", async () => {
    const server = await startHttpServer(options);
    const headers = { "x-huge": "h".repeat(MAX_HEADER_BYTES) };
    assert.equal((await fetch(`${server.address.url}/livez`, { headers })).status, 431);
    await server.close(AbortSignal.abort());
  });

  test("names the address on which it cannot listen", async () => {
    const first = await startHttpServer(options);
    await assert.rejects(
      startHttpServer({ ...options, port: first.address.port }),
      (error) => error instanceof ListenError && error.message.includes(String(first.address.port)),
    );
    await first.close(AbortSignal.abort());
  });
});
