import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, test } from "node:test";
import { ServerGoneError, ServerRefusedError } from "../../domain/errors.ts";
import { HttpClient, messageOf } from "./http-client.ts";

const within = (ms: number) => ({ signal: AbortSignal.timeout(ms) });

async function serve(listener: RequestListener) {
  const server = createHttpServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new HttpClient({ name: "the server", url, apiKey: "plain", adminKey: "admin" });
  return {
    client,
    async [Symbol.asyncDispose]() {
      client.close();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

describe("HttpClient", () => {
  test("repeats a request only if its kept connection was closed at the same moment", async () => {
    let connections = 0;
    const answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    const server = createTcpServer((socket) => {
      const connection = ++connections;
      let requests = 0;
      socket.on("error", () => undefined);
      socket.on("data", () => {
        requests++;
        // The first connection is closed when it is used again; the third never answers.
        if ((connection === 1 && requests === 2) || connection === 3) socket.resetAndDestroy();
        else socket.write(answer);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const client = new HttpClient({ name: "the server", url });
    const get = () => client.get("/", within(10_000));
    assert.equal((await get()).status, 200);
    assert.equal((await get()).status, 200);
    assert.equal(connections, 2);
    client.close();
    await assert.rejects(get(), ServerGoneError);
    assert.equal(connections, 3);
    client.close();
    server.close();
    await once(server, "close");
  });

  test("distinguishes servers that are gone from refusals, and quotes the server's message", async () => {
    await using subject = await serve(({ url }, response) => {
      const status = Number(url!.slice(1));
      response.writeHead(status).end(JSON.stringify({ error: { message: `because of ${status}` } }));
    });
    const { client } = subject;
    for (const status of [400, 401, 404, 500]) {
      await assert.rejects(
        client.get(`/${status}`, within(10_000)),
        (error) =>
          error instanceof ServerRefusedError && error.status === status && /because of/.test(error.message),
      );
    }
    await assert.rejects(client.get("/503", within(10_000)), ServerGoneError);
    assert.equal((await client.get("/404", { ...within(10_000), accepted: [404] })).status, 404);
    const away = new HttpClient({ name: "nobody", url: "http://127.0.0.1:1" });
    await assert.rejects(away.get("/", within(10_000)), ServerGoneError);
  });

  test("reads events to their end, and fails if the answer breaks off", async () => {
    await using subject = await serve(({ url }, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('data: {"a":1}\n\ndata: {"a":2}\n\n');
      if (url === "/whole") response.end("data: [DONE]\n\n");
      else if (url === "/short") response.end();
      else if (url === "/broken") setImmediate(() => response.destroy());
    });
    const { client } = subject;
    const read = async (path: string, signal: AbortSignal) => {
      const found: unknown[] = [];
      for await (const event of client.events(path, {}, signal)) found.push(event);
      return found;
    };
    assert.deepEqual(await read("/whole", AbortSignal.timeout(10_000)), [{ a: 1 }, { a: 2 }]);
    for (const path of ["/short", "/broken"]) {
      await assert.rejects(read(path, AbortSignal.timeout(10_000)), ServerGoneError, path);
    }
    const reason = new Error("enough");
    const stopping = new AbortController();
    const reading = read("/silent", stopping.signal);
    setImmediate(() => stopping.abort(reason));
    await assert.rejects(reading, (error) => error === reason);
  });

  test("gives up an answer at its deadline", async () => {
    await using subject = await serve(() => undefined);
    const call = subject.client.get("/", { ...within(10_000), deadlineMs: 50 });
    await assert.rejects(call, { code: "DEADLINE" });
  });

  test("sends the key of each kind of route", async () => {
    const keys: unknown[] = [];
    await using subject = await serve(({ headers }, response) => {
      keys.push(headers.authorization);
      response.end("{}");
    });
    await subject.client.post("/generate", {}, within(10_000));
    await subject.client.post("/pause", {}, { ...within(10_000), isControl: true });
    assert.deepEqual(keys, ["Bearer plain", "Bearer admin"]);
  });

  test("finds the message of an error in every form that servers use", () => {
    assert.equal(messageOf({ error: { message: "a" } }), "a");
    assert.equal(messageOf({ error: "b" }), "b");
    assert.equal(messageOf({ message: "c" }), "c");
    assert.equal(messageOf({ detail: "d" }), "d");
    assert.equal(messageOf("e"), "e");
    assert.equal(messageOf({ detail: [{ loc: 1 }] }), '[{"loc":1}]');
  });
});
