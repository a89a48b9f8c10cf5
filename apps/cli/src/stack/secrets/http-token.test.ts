import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { findProject } from "../../project.ts";
import { httpToken } from "./http-token.ts";

describe("httpToken()", () => {
  test("creates a token that only its owner may read, and keeps it", async () => {
    await using folder = await temporaryFolder("token");
    const project = findProject({ HONE_STATE_DIR: folder.path });
    const tokens = await Promise.all([httpToken(project), httpToken(project), httpToken(project)]);
    const kept = await httpToken(project);
    assert.match(kept, /^[A-Za-z0-9_-]{32}$/);
    assert.equal((await readFile(project.tokenFile, "utf8")).trim(), kept);
    assert.equal((await stat(project.tokenFile)).mode & 0o777, 0o600);
    assert.ok(tokens.every((token) => /^[A-Za-z0-9_-]{32}$/.test(token)));
  });

  test("replaces a file that holds no valid token", async () => {
    await using folder = await temporaryFolder("token");
    const project = findProject({ HONE_STATE_DIR: folder.path });
    await writeFile(project.tokenFile, "short\n");
    assert.match(await httpToken(project), /^[A-Za-z0-9_-]{32}$/);
  });
});
