import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OnNewVersion } from "@hone/rl";
import { onNewVersionFromWire, onNewVersionToWire } from "./codecs.ts";

describe("codecs", () => {
  test("what happens to generations on a new version is the same after the wire", () => {
    for (const choice of Object.values(OnNewVersion)) {
      assert.equal(onNewVersionFromWire(onNewVersionToWire(choice)), choice);
    }
  });

  test("a message without that choice, or with one of a later version of Hone, means recompute", () => {
    assert.equal(onNewVersionFromWire(0), OnNewVersion.recompute);
    assert.equal(onNewVersionFromWire(99 as never), OnNewVersion.recompute);
  });
});
