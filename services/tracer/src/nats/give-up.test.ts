import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RetryableError, TerminalError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { storedOrGivenUp } from "./give-up.ts";

const item = (deliveries: number) => ({ subject: "s", sequence: 1, deliveries });
const refused = () => Promise.reject(new TerminalError("REFUSED", "refused"));
const away = () => Promise.reject(new RetryableError("AWAY", "away"));

describe("storedOrGivenUp()", () => {
  test("gives a message up that was refused for good ten times", async () => {
    await storedOrGivenUp(item(10), refused(), silentLogger());
    await assert.rejects(storedOrGivenUp(item(9), refused(), silentLogger()), TerminalError);
  });

  test("never gives up while the database is away", async () => {
    await assert.rejects(storedOrGivenUp(item(1_000), away(), silentLogger()), RetryableError);
  });
});
