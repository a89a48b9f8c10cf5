import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { AnswerTooLongError, readText } from "./read-text.ts";

test("readText() reads a whole text, also where a character is split between two chunks", async () => {
  assert.equal(await readText(new Response("zwölf"), 100), "zwölf");
  assert.equal(await readText(new Response(null), 100), "");
  const bytes = new TextEncoder().encode("ö");
  const pieces = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  assert.equal(await readText({ body: pieces }, 2), "ö");
});

test("readText() stops reading an endless answer and closes its connection", async () => {
  const { promise: isClosed, resolve } = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    response.on("close", resolve);
    const send = () => {
      while (!response.destroyed && response.write("x".repeat(65_536)));
    };
    response.on("drain", send);
    send();
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await assert.rejects(readText(await fetch(`http://127.0.0.1:${port}`), 1_000_000), AnswerTooLongError);
  await isClosed;
  server.close();
});
