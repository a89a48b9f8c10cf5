import assert from "node:assert/strict";
import { homedir } from "node:os";
import { describe, test } from "node:test";
import { cacheFolder } from "./cache-folder.ts";

describe("cacheFolder", () => {
  test("is the folder that HONE_CACHE_DIR names, or else the folder hone in the user's cache folder", () => {
    assert.equal(cacheFolder({ HONE_CACHE_DIR: "/caches", XDG_CACHE_HOME: "/other" }), "/caches");
    assert.equal(cacheFolder({ XDG_CACHE_HOME: "/other" }), "/other/hone");
    assert.equal(cacheFolder({ HONE_CACHE_DIR: "", XDG_CACHE_HOME: "" }), `${homedir()}/.cache/hone`);
  });
});
