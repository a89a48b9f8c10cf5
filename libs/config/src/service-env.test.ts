import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { environmentInteger, readEnvironment } from "./service-env.ts";

const schema = z.object({
  HONE_PORT: environmentInteger(0, 65_535).default(0),
  HONE_FORWARD: z.stringbool().default(false),
  HONE_URL: z.string().min(1),
});

test("readEnvironment() converts values, fills in defaults and ignores other variables", () => {
  const environment = { HONE_PORT: "8080", HONE_URL: "nats://x", PATH: "/bin" };
  assert.deepEqual(readEnvironment(schema, environment), {
    HONE_PORT: 8080,
    HONE_FORWARD: false,
    HONE_URL: "nats://x",
  });
});

test("readEnvironment() treats an empty variable as absent, and reports every wrong one", () => {
  assert.throws(
    () => readEnvironment(schema, { HONE_PORT: "90000", HONE_FORWARD: "perhaps", HONE_URL: "" }),
    /HONE_PORT.*at most 65535.*HONE_FORWARD.*HONE_URL/s,
  );
});
