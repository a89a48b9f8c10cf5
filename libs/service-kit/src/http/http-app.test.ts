import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInputError, RetryableError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { HTTPException } from "hono/http-exception";
import { createHttpApp } from "./http-app.ts";

describe("createHttpApp()", () => {
  const failures: ReadonlyArray<[Error, number, string]> = [
    [new InvalidInputError("Cannot read", { path: "n", allowed: "a number" }), 400, "INVALID_INPUT"],
    [new RetryableError("AWAY", "Cannot ask yet"), 503, "AWAY"],
    [new HTTPException(418, { message: "Cannot brew" }), 418, "HTTP"],
    [new Error("inner workings"), 500, "INTERNAL"],
  ];
  for (const [failure, status, code] of failures) {
    test(`answers ${status} ${code} for ${failure.constructor.name}`, async () => {
      const app = createHttpApp(silentLogger());
      app.get("/", () => {
        throw failure;
      });
      const response = await app.request("/");
      assert.equal(response.status, status);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      assert.equal(error.code, code);
      assert.doesNotMatch(error.message, /inner workings/);
    });
  }

  test("answers 404 with the path", async () => {
    const response = await createHttpApp(silentLogger()).request("/nowhere");
    assert.equal(response.status, 404);
    assert.match(await response.text(), /nowhere/);
  });
});
