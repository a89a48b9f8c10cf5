import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort, isPortFree, LOOPBACK, portsBelow } from "./free-port.ts";

test("freePort() returns ports that are not in use, outside of the range for outgoing connections", async () => {
  for (let i = 0; i < 20; i++) {
    const port = await freePort();
    assert.ok(port >= 10_000 && port < 32_768, String(port));
    assert.ok(await isPortFree(port), String(port));
  }
});

test("ports are chosen below those of outgoing connections, wherever a system begins with them", () => {
  const usual = { from: 20_000, to: 32_767 };
  assert.deepEqual(portsBelow(undefined), usual);
  assert.deepEqual(portsBelow(49_152), usual);
  assert.deepEqual(portsBelow(32_768), usual);
  assert.deepEqual(portsBelow(25_000), { from: 20_000, to: 24_999 });
  assert.deepEqual(portsBelow(16_000), { from: 10_000, to: 15_999 });
  assert.deepEqual(
    portsBelow(1_024),
    usual,
    "no room below, so a port may be lost, and another one is tried",
  );
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
