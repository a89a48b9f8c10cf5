import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { contextOf, runBelow, startSpan, startTelemetry } from "@hone/telemetry";
import { startChatSpan } from "../domain/chat-span.ts";
import type { GenerateRequest } from "../domain/inference-engine.ts";
import { HttpClient } from "./http/http-client.ts";

const request = {
  model: "lake-1",
  promptIds: [1],
  sampling: {},
  versionRange: {},
} as unknown as GenerateRequest;

test("only the call of a generation has the headers of its trace", async () => {
  const heard: IncomingHttpHeaders[] = [];
  const server = createServer((incoming, response) => {
    if (incoming.method === "POST" && incoming.url === "/v1/completions") heard.push(incoming.headers);
    incoming.resume().once("end", () => response.end("{}"));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const telemetry = await startTelemetry({ serviceName: "inference-gateway", tracerUrl: url });
  const client = new HttpClient({ name: "a server", url });
  try {
    const call = () => client.post("/v1/completions", {}, { signal: AbortSignal.timeout(5_000) });
    const caller = startSpan("chat lake-1", { parent: "root" });
    const { traceId } = caller.spanContext();
    const span = startChatSpan(request, contextOf(caller), "r");
    await runBelow(span.below, call);
    await call();
    const [inside, outside] = heard;
    assert.match(String(inside?.traceparent), new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
    assert.ok(
      !String(inside?.traceparent).includes(caller.spanContext().spanId),
      "below the gateway's own span",
    );
    assert.equal(outside?.traceparent, undefined);
  } finally {
    client.close();
    await telemetry.shutdown();
    server.closeAllConnections();
    server.close();
  }
});
