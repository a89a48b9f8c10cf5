import assert from "node:assert/strict";
import { delimiter } from "node:path";
import { test } from "node:test";
import { readModelFolders } from "@hone/config";
import { allowModelFolders } from "./project.ts";

test("allowModelFolders() resolves folders against the user's folder and adds them to HONE_MODEL_FOLDERS", async () => {
  const env: NodeJS.ProcessEnv = { INIT_CWD: "/somebody", HONE_MODEL_FOLDERS: "/models" };
  allowModelFolders(["own", "/data"], env);
  assert.equal(env.HONE_MODEL_FOLDERS, ["/models", "/somebody/own", "/data"].join(delimiter));
  const folders = readModelFolders(env, []);
  assert.equal(await folders.find("/somebody/own/not-there", "model.path"), undefined);
  await assert.rejects(folders.find("/somebody/else", "model.path"), /HONE_MODEL_FOLDERS/);
});
