import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { removeOwnReadyFile, removeReadyFile, writeReadyFile } from "./ready-file.ts";

test("writeReadyFile() leaves one whole file, also where the folder is missing or an old file is in the way", async () => {
  await using folder = await temporaryFolder("ready");
  const path = join(folder.path, "services", "judge.json");
  const content = { service: "judge", pid: 12, httpPort: 8080, instanceId: "one" };
  await writeReadyFile(path, { ...content, pid: 11 });
  await writeReadyFile(path, content);
  assert.deepEqual(JSON.parse(await readFile(path, "utf8")), content);
  assert.deepEqual(await readdir(dirname(path)), ["judge.json"]);
  await removeReadyFile(path);
  await removeReadyFile(path);
  assert.deepEqual(await readdir(dirname(path)), []);
});

test("removeOwnReadyFile() leaves the file of a successor that is ready before this process has stopped", async () => {
  await using folder = await temporaryFolder("ready");
  const path = join(folder.path, "judge.json");
  const successor = { service: "judge", pid: 12, httpPort: 8080, instanceId: "one" };
  await writeReadyFile(path, successor);
  await removeOwnReadyFile(path, 11);
  assert.deepEqual(JSON.parse(await readFile(path, "utf8")), successor);
  await removeOwnReadyFile(path, 12);
  await removeOwnReadyFile(path, 12);
  assert.deepEqual(await readdir(folder.path), []);
});

test("removeOwnReadyFile() does not fail where the file was damaged meanwhile", async () => {
  await using folder = await temporaryFolder("ready");
  const path = join(folder.path, "judge.json");
  for (const damaged of ["", "null", '{"pid"']) {
    await writeFile(path, damaged);
    await removeOwnReadyFile(path, 12);
    assert.equal(await readFile(path, "utf8"), damaged);
  }
});
