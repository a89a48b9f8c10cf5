import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import { boundedFetch } from "./bounded-fetch.ts";
import { AnswerTooLongError, readBytes, readText } from "./read-text.ts";

/* The attacker is the server that answers the requests. */

const MAX_BYTES = 64 * 1024;

describe("answers with a size limit", () => {
  let server: Server;
  let url: string;
  let answer: (response: ServerResponse) => void;
  let closed: Promise<unknown>;
  beforeEach(async () => {
    server = createServer((_request, response) => {
      closed = once(response, "close");
      answer(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const bytes = (count: number) => (response: ServerResponse) => void response.end("a".repeat(count));
  const endless = (response: ServerResponse) => {
    const timer = setInterval(() => response.write("a".repeat(8 * 1024)), 1);
    response.once("close", () => clearInterval(timer));
  };
  /** 16 MiB that are compressed to 16 KiB. */
  const compressed = (response: ServerResponse) =>
    void response
      .writeHead(200, { "content-encoding": "gzip" })
      .end(gzipSync(Buffer.alloc(16 * 1024 * 1024)));

  test("are read whole up to the limit", async () => {
    answer = bytes(MAX_BYTES);
    assert.equal((await readBytes(await fetch(url), MAX_BYTES)).length, MAX_BYTES);
    answer = (response) => void response.end("grüße");
    assert.equal(await readText(await fetch(url), MAX_BYTES), "grüße");
    answer = (response) => void response.writeHead(204).end();
    assert.equal(await readText(await fetch(url), MAX_BYTES), "");
  });

  test("are refused above it, and the connection is closed", { timeout: 20_000 }, async () => {
    for (const hostile of [bytes(MAX_BYTES + 1), endless, compressed]) {
      answer = hostile;
      const response = await fetch(url);
      await assert.rejects(readText(response, MAX_BYTES), AnswerTooLongError);
      await closed;
    }
  });

  test("are refused above it when they come from node:http", { timeout: 20_000 }, async () => {
    answer = endless;
    const [response] = (await once(get(url), "response")) as [IncomingMessage];
    await assert.rejects(readBytes({ body: response }, MAX_BYTES), AnswerTooLongError);
    await closed;
  });

  test("stop when the request's signal aborts, however slowly they arrive", { timeout: 20_000 }, async () => {
    answer = (response) => {
      const timer = setInterval(() => response.write("a"), 20);
      response.once("close", () => clearInterval(timer));
    };
    const response = await fetch(url, { signal: AbortSignal.timeout(200) });
    await assert.rejects(readText(response, MAX_BYTES), { name: "TimeoutError" });
    await closed;
  });

  test("fail at the limit when a library reads them through boundedFetch()", {
    timeout: 20_000,
  }, async () => {
    const bounded = boundedFetch(MAX_BYTES);
    answer = (response) => void response.writeHead(418, { "x-kept": "yes" }).end('{"a":1}');
    const small = await bounded(url);
    assert.deepEqual([small.status, small.headers.get("x-kept"), await small.json()], [418, "yes", { a: 1 }]);
    answer = (response) => void response.writeHead(204).end();
    assert.equal((await bounded(url)).status, 204);
    for (const hostile of [endless, compressed]) {
      answer = hostile;
      await assert.rejects((await bounded(url)).text(), AnswerTooLongError);
      await closed;
    }
  });
});
