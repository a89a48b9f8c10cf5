import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Hono } from "hono";
import { ListenError } from "./errors.ts";
import { startHttpServer } from "./http-server.ts";

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

  test("says which address it cannot have", async () => {
    const first = await startHttpServer(options);
    await assert.rejects(
      startHttpServer({ ...options, port: first.address.port }),
      (error) => error instanceof ListenError && error.message.includes(String(first.address.port)),
    );
    await first.close(AbortSignal.abort());
  });
});
