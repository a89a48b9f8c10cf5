import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { findModel } from "./find-model.ts";

describe("findModel()", () => {
  let folder: TemporaryFolder;
  const find = (text: string) =>
    findModel(text, { state: path.join(folder.path, "state"), user: folder.path });

  before(async () => {
    folder = await temporaryFolder("find-model");
    const kept = [
      "state/runs/lake-1/checkpoints/step-3",
      "state/runs/lake-1/checkpoints/step-9",
      "lake-1",
      "owner/name",
    ];
    for (const each of kept) await mkdir(path.join(folder.path, each), { recursive: true });
  });
  after(() => folder[Symbol.asyncDispose]());

  test("prefers a run to a folder of the same name, and takes its newest version by default", async () => {
    const newest = path.join(folder.path, "state/runs/lake-1/checkpoints/step-9");
    assert.deepEqual(await find("lake-1"), { place: { path: newest, revision: "main" }, shown: "lake-1@9" });
    assert.match((await find("lake-1@3")).place.path, /step-3$/);
    await assert.rejects(find("lake-1@4"), /run lake-1 has no version 4; it has 3, 9/);
  });

  test("prefers a folder to an id of the hub", async () => {
    assert.equal((await find("owner/name")).place.path, path.join(folder.path, "owner/name"));
  });

  test("takes other names as ids of the hub, with an optional revision", async () => {
    assert.deepEqual((await find("Some/Model-1.5")).place, { path: "Some/Model-1.5", revision: "main" });
    assert.deepEqual((await find("Some/Model@refs/pr/3")).place, {
      path: "Some/Model",
      revision: "refs/pr/3",
    });
  });

  for (const text of ["lake-2", "./nowhere", "a/b/c", "../up", "a/b@", ""]) {
    test(`refuses ${JSON.stringify(text)}`, async () => {
      await assert.rejects(find(text), /is not a run .*, a folder or a hub id/);
    });
  }
});
