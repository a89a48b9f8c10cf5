import assert from "node:assert/strict";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadModel, saveAdapter, saveCheckpoint } from "@hone/checkpoint";
import { ModelFolders } from "@hone/config";
import { initialiseAdapters, initialiseWeights, resolveLora, resolveModelSpec } from "@hone/nn";
import { temporaryFolder } from "@hone/testing";
import { prepareModel } from "./domain/model/prepare-model.ts";
import { RunFolders } from "./domain/state/run-folders.ts";
import { findModels } from "./find-models.ts";
import { testConfig } from "./testing/fake-run.ts";

/* These tests assume an attacker who can publish run files and upload adapters to a hub. */

const EXAMPLE = fileURLToPath(new URL("../../../examples/01-frozen-lake/", import.meta.url));
const TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const spec = resolveModelSpec({ family: "llama", vocabSize: 32, hiddenSize: 8, numLayers: 1, numHeads: 2 });
const options = { signal: new AbortController().signal, onProgress: () => undefined };

describe("findModels()", () => {
  let temporary: Awaited<ReturnType<typeof temporaryFolder>>;
  const at = (name: string) => path.join(temporary.path, name);
  before(async () => {
    temporary = await temporaryFolder("find-models");
    await mkdir(at("files"));
    await saveCheckpoint(at("private"), { spec, weights: initialiseWeights(spec, 1), companions: {} });
    for (const name of TOKENIZER_FILES) await cp(path.join(EXAMPLE, name), path.join(at("private"), name));
    const base = await loadModel(at("private"));
    const lora = resolveLora({ rank: 1, alpha: 1, targets: "all-linear" });
    for (const [name, place] of [
      ["absolute", at("private")],
      ["relative", "../../private"],
      ["inside", "../copy"],
    ] as const) {
      await saveAdapter(at(`files/${name}`), {
        ...base,
        lora,
        weights: initialiseAdapters(spec, lora, 1),
        base: { place },
        baseDigest: base.digest,
      });
    }
    await cp(at("private"), at("files/copy"), { recursive: true });
    await symlink(at("private"), at("files/link"));
    await cp(at("private"), at("files/leaking"), { recursive: true });
    await writeFile(at("secret"), "secret");
    await symlink(at("secret"), at("files/leaking/merges.txt"));
  });
  after(() => temporary[Symbol.asyncDispose]());

  const prepare = (name: string, run: string, folders = new ModelFolders([at("files")])) => {
    const hub = { endpoint: "http://127.0.0.1:1", cacheDir: at("hub"), token: undefined, isOffline: true };
    const config = testConfig({ model: { path: at(name) } });
    return prepareModel(config, new RunFolders(at("state"), run), findModels(hub, folders), options);
  };

  for (const [index, name] of ["files/copy", "files/inside"].entries()) {
    test(`reads ${name}: the model and its base lie in an allowed folder`, async () => {
      const prepared = await prepare(name, `read-${index}`);
      assert.equal(prepared.kind, "ready", JSON.stringify(prepared));
    });
  }

  for (const [index, name] of [
    "private",
    "files/link",
    "files/absolute",
    "files/relative",
    "files/leaking",
  ].entries()) {
    test(`refuses ${name}: the model, its base or one of its files lies outside the allowed folders`, async () => {
      const prepared = await prepare(name, `refused-${index}`);
      assert.ok(prepared.kind === "refused", name);
      assert.equal(prepared.problems[0]?.key, "model.path");
      const message = prepared.problems[0]?.message ?? "";
      assert.match(message, /outside of the folders that models may be read from/);
      const everywhere = await prepare(name, `allowed-${index}`, ModelFolders.everywhere);
      assert.equal(everywhere.kind, "ready", JSON.stringify(everywhere));
    });
  }
});
