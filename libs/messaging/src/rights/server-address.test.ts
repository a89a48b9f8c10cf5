import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { splitCredentials } from "./server-address.ts";

describe("splitCredentials()", () => {
  test("takes user and password from the first address that has them", () => {
    assert.deepEqual(splitCredentials("nats://a:4222, judge:p%40ss@b:4223,nats://x:y@c"), {
      servers: "nats://a:4222,nats://b:4223,nats://c",
      user: "judge",
      password: "p@ss",
    });
  });

  test("returns an address without them unchanged", () => {
    assert.deepEqual(splitCredentials("127.0.0.1:4222"), { servers: "127.0.0.1:4222" });
  });

  test("refuses an invalid address without the password in its message", () => {
    assert.throws(
      () => splitCredentials("nats://judge:hidden@ho st"),
      (error) =>
        error instanceof Error &&
        /is not the address of a NATS server/.test(error.message) &&
        !/hidden/.test(error.message),
    );
  });
});
