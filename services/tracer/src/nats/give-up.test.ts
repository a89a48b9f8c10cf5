import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RetryableError, TerminalError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { waitOrGiveUp } from "./give-up.ts";

const item = (deliveries: number) => ({ subject: "s", sequence: 1, deliveries });
const refused = () => Promise.reject(new TerminalError("REFUSED", "refused"));
const away = () => Promise.reject(new RetryableError("AWAY", "away"));

describe("waitOrGiveUp()", () => {
  test("gives up a message at its tenth terminal error", async () => {
    await waitOrGiveUp(item(10), refused(), silentLogger());
    await assert.rejects(waitOrGiveUp(item(9), refused(), silentLogger()), TerminalError);
  });

  test("never gives up while the database does not answer", async () => {
    await assert.rejects(waitOrGiveUp(item(1_000), away(), silentLogger()), RetryableError);
  });
});
