import assert from "node:assert/strict";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";
import { ModelFolders, readModelFolders } from "./model-folders.ts";

/* The attacker may publish run files and create links in a shared folder. */

describe("folders that models may be read from", () => {
  let top: string;
  before(async () => {
    top = await realpath(await mkdtemp(path.join(tmpdir(), "hone-models-")));
    for (const folder of ["files/model", "secret/model", "models/model", "files-of-others/model"]) {
      await mkdir(path.join(top, folder), { recursive: true });
    }
    await writeFile(path.join(top, "files", "plain"), "");
    await symlink(path.join(top, "secret"), path.join(top, "files", "out"));
    await symlink(path.join(top, "models", "model"), path.join(top, "files", "to-models"));
  });
  after(() => rm(top, { recursive: true }));
  const at = (name: string) => path.join(top, name);

  test("are Hone's own and those that the operator adds, also if a link leads from one to another", async () => {
    const folders = readModelFolders({ HONE_MODEL_FOLDERS: at("models") }, [at("files"), at("not-there")]);
    assert.equal(await folders.find(at("files/model"), "model.path"), at("files/model"));
    assert.equal(await folders.find(at("models/model"), "model.path"), at("models/model"));
    assert.equal(await folders.find(at("files/to-models"), "model.path"), at("models/model"));
    assert.equal(await folders.find(at("files/plain"), "model.path"), undefined);
    assert.equal(await folders.find(at("files/missing"), "model.path"), undefined);
  });

  test("do not include other folders, and the refusal does not tell whether a folder exists", async () => {
    const folders = readModelFolders({}, [at("files")]);
    const messages: string[] = [];
    for (const outside of [
      "secret/model",
      "secret/missing",
      "files/../secret/model",
      "files/out/model",
      "files/to-models",
      "files-of-others/model",
    ]) {
      await assert.rejects(folders.find(`${top}/${outside}`, "model.path"), (error) => {
        assert.ok(error instanceof InvalidInputError, outside);
        messages.push(error.message.replace(`${top}/${outside}`, ""));
        return true;
      });
    }
    assert.equal(new Set(messages).size, 1);
    assert.match(messages[0] ?? "", /^model\.path .*HONE_MODEL_FOLDERS.*hone up --models/);
    await assert.rejects(new ModelFolders([]).find("/", "model.path"), InvalidInputError);
    assert.equal(await ModelFolders.everywhere.find(at("secret/model"), "model.path"), at("secret/model"));
  });

  test("are refused if they hold a link to a file outside, which would be copied into checkpoints", async () => {
    const model = at("files/linked");
    await mkdir(model);
    await writeFile(at("secret/key"), "secret");
    await writeFile(at("files/blob"), "weights");
    await symlink(at("files/blob"), path.join(model, "model.safetensors"));
    await symlink(at("nowhere"), path.join(model, "broken"));
    const folders = readModelFolders({}, [at("files")]);
    assert.equal(await folders.find(model, "model.path"), model);
    await symlink(at("secret/key"), path.join(model, "merges.txt"));
    await assert.rejects(folders.find(model, "model.path"), (error) => {
      assert.ok(error instanceof InvalidInputError);
      assert.match(error.message, /its file merges\.txt is a link to a file outside/);
      return true;
    });
  });

  test("are refused when the service starts if their paths are not absolute", () => {
    assert.throws(() => readModelFolders({ HONE_MODEL_FOLDERS: "models" }, []), ConfigError);
  });
});
