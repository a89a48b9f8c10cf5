import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort, isPortFree, LOOPBACK } from "./free-port.ts";

test("freePort() returns ports that are not in use, outside of the range for outgoing connections", async () => {
  for (let i = 0; i < 20; i++) {
    const port = await freePort();
    assert.ok(port >= 20_000 && port < 32_768, String(port));
    assert.ok(await isPortFree(port), String(port));
  }
});

test("isPortFree() is false while a server listens on the port", async () => {
  const port = await freePort();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, LOOPBACK, resolve));
  try {
    assert.equal(await isPortFree(port), false);
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
});
