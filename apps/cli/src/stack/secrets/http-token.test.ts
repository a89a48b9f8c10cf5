import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { findProject } from "../../project.ts";
import { httpToken } from "./http-token.ts";

describe("httpToken()", () => {
  test("creates a token that only its owner may read, once for all who ask at the same time, and keeps it", async () => {
    await using folder = await temporaryFolder("token");
    const project = findProject({ HONE_STATE_DIR: folder.path });
    const tokens = await Promise.all(Array.from({ length: 20 }, () => httpToken(project)));
    const kept = await httpToken(project);
    assert.match(kept, /^[A-Za-z0-9_-]{32}$/);
    assert.equal((await readFile(project.tokenFile, "utf8")).trim(), kept);
    assert.equal((await stat(project.tokenFile)).mode & 0o777, 0o600);
    assert.deepEqual(new Set(tokens), new Set([kept]));
    assert.deepEqual(await readdir(folder.path), [path.basename(project.tokenFile)]);
  });

  test("replaces a file that holds no valid token", async () => {
    await using folder = await temporaryFolder("token");
    const project = findProject({ HONE_STATE_DIR: folder.path });
    await writeFile(project.tokenFile, "short\n");
    assert.match(await httpToken(project), /^[A-Za-z0-9_-]{32}$/);
  });
});
