import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { OtlpForwarder } from "./otlp-forwarder.ts";

/** Starts an OTLP receiver that answers as the test says. */
async function startReceiver(answer: (request: number, response: ServerResponse) => void) {
  const received: {
    url: string | undefined;
    type: string | undefined;
    encoding: string | undefined;
    body: string;
  }[] = [];
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const { "content-type": type, "content-encoding": encoding } = request.headers;
    received.push({ url: request.url, type, encoding, body });
    answer(received.length, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  return {
    received,
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const item = { body: Buffer.from("spans"), contentType: "application/x-protobuf", contentEncoding: "gzip" };

describe("OtlpForwarder", () => {
  test("forwards an export unchanged", async () => {
    await using receiver = await startReceiver((_, response) => response.end("{}"));
    const forwarder = new OtlpForwarder(`${receiver.url}/`, silentLogger());
    forwarder.offer(item);
    await forwarder.close(AbortSignal.timeout(5_000));
    assert.deepEqual(receiver.received, [
      { url: "/v1/traces", type: "application/x-protobuf", encoding: "gzip", body: "spans" },
    ]);
    assert.deepEqual(forwarder.counts, { forwarded: 1, dropped: 0 });
  });

  test("tries again after an answer that allows it, after the pause that the answer asks for", async () => {
    await using receiver = await startReceiver((request, response) => {
      if (request > 2) response.end("{}");
      else response.writeHead(request === 1 ? 503 : 429, { "retry-after": "0" }).end();
    });
    const forwarder = new OtlpForwarder(`${receiver.url}/v1/traces`, silentLogger());
    forwarder.offer(item);
    await forwarder.close(AbortSignal.timeout(5_000));
    assert.equal(receiver.received.length, 3);
    assert.deepEqual(forwarder.counts, { forwarded: 1, dropped: 0 });
  });

  test("does not send an export again that the receiver refuses", async () => {
    await using receiver = await startReceiver((_, response) => response.writeHead(400).end());
    const forwarder = new OtlpForwarder(receiver.url, silentLogger());
    forwarder.offer(item);
    await forwarder.close(AbortSignal.timeout(5_000));
    assert.equal(receiver.received.length, 1);
    assert.deepEqual(forwarder.counts, { forwarded: 0, dropped: 1 });
  });

  test("drops and counts exports that its queue cannot hold, without waiting", async () => {
    const held: ServerResponse[] = [];
    await using receiver = await startReceiver((_, response) => held.push(response));
    const forwarder = new OtlpForwarder(receiver.url, silentLogger());
    const large = { ...item, body: new Uint8Array(1024 * 1024) };
    for (let i = 0; i < 100; i++) forwarder.offer(large);
    assert.equal(forwarder.counts.dropped, 36);
    await forwarder.close(AbortSignal.abort());
    assert.deepEqual(forwarder.counts, { forwarded: 0, dropped: 100 });
  });

  test("closes when the signal aborts, even if the receiver cannot be reached", async () => {
    const forwarder = new OtlpForwarder("http://127.0.0.1:9", silentLogger());
    forwarder.offer(item);
    const closing = new AbortController();
    const closed = forwarder.close(closing.signal);
    closing.abort();
    await closed;
    assert.deepEqual(forwarder.counts, { forwarded: 0, dropped: 1 });
  });
});
