/** Receives spans as the tracer does and counts their bytes, so that traced calls include the cost of export. */

import { createServer } from "node:http";
import { LOOPBACK } from "@hone/embedded";

export interface SpanSink extends AsyncDisposable {
  /** The endpoint for `startTelemetry`. */
  readonly url: string;
  readonly receivedBytes: number;
}

export async function startSpanSink(): Promise<SpanSink> {
  let receivedBytes = 0;
  const server = createServer((request, response) => {
    request.on("data", (chunk: Uint8Array) => {
      receivedBytes += chunk.length;
    });
    request.on("end", () => response.end());
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://${LOOPBACK}:${port}`,
    get receivedBytes() {
      return receivedBytes;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
