import assert from "node:assert/strict";
import { homedir } from "node:os";
import { describe, test } from "node:test";
import { cacheFolder } from "./cache-folder.ts";

describe("cacheFolder", () => {
  test("is what HONE_CACHE_DIR names, or hone below the account's own caches", () => {
    assert.equal(cacheFolder({ HONE_CACHE_DIR: "/caches", XDG_CACHE_HOME: "/other" }), "/caches");
    assert.equal(cacheFolder({ XDG_CACHE_HOME: "/other" }), "/other/hone");
    assert.equal(cacheFolder({ HONE_CACHE_DIR: "", XDG_CACHE_HOME: "" }), `${homedir()}/.cache/hone`);
  });
});
