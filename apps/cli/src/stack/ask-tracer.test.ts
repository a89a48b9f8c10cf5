/** Tests how lines are read from the tracer, with a server that speaks as it does. */

import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { linesFromTracer } from "./ask-tracer.ts";

describe("linesFromTracer()", () => {
  let answer: (response: ServerResponse) => void;
  const server = createServer((request, response) => {
    assert.equal(request.headers.authorization, "Bearer secret");
    answer(response);
  });
  before(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
  after(() => server.close());

  const read = async (signal = new AbortController().signal) => {
    const { port } = server.address() as AddressInfo;
    const place = { pageUrl: `http://127.0.0.1:${port}`, token: "secret", signal };
    const lines: string[] = [];
    for await (const line of linesFromTracer(place, "/api/notes.jsonl")) lines.push(line);
    return lines;
  };

  test("joins lines that come in pieces, also within a character", async () => {
    answer = (response) => {
      const bytes = Buffer.from('{"a":"ü"}\n{"b":2}\n');
      response.write(bytes.subarray(0, 7));
      setTimeout(() => response.end(bytes.subarray(7)), 20);
    };
    assert.deepEqual(await read(), ['{"a":"ü"}', '{"b":2}']);
  });

  test("has no line where there is none", async () => {
    answer = (response) => response.end();
    assert.deepEqual(await read(), []);
  });

  test("says that the tracer ended in the middle of a line", async () => {
    answer = (response) => response.end('{"a":1}\n{"b"');
    await assert.rejects(read(), /in the middle of a line/);
  });

  test("gives the tracer's own reason for a refusal", async () => {
    answer = (response) => {
      response.statusCode = 401;
      response.end('{"error":{"code":"UNAUTHORIZED","message":"the tracer needs its token"}}');
    };
    await assert.rejects(read(), /gave no lines: the tracer needs its token/);
  });

  test("ends when the signal aborts, or when the connection breaks", async () => {
    answer = (response) => response.write('{"a":1}\n');
    await assert.rejects(read(AbortSignal.timeout(100)), { name: "TimeoutError" });
    answer = (response) => {
      response.write('{"a":1}\n');
      setTimeout(() => response.destroy(), 20);
    };
    await assert.rejects(read(), /does not answer/);
  });
});
