import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { FolderRefusedError } from "../errors.ts";
import { RunFolders } from "./run-folders.ts";

async function makeState(folders: RunFolders, ...names: string[]): Promise<void> {
  for (const name of names) await mkdir(folders.absolute(`runs/test-1/state/${name}`), { recursive: true });
}

async function states(folders: RunFolders): Promise<string[]> {
  return (await readdir(folders.absolute("runs/test-1/state"))).sort();
}

describe("RunFolders", () => {
  test("a folder whose writing fails does not appear under its name, and does not disturb the next try", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "test-1");
    const failing = folders.writeWhole(folders.state(1, 1), async (folder) => {
      await writeFile(path.join(folder, "half"), "x");
      throw new Error("disk full");
    });
    await assert.rejects(failing, /disk full/);
    assert.equal(await folders.exists(folders.state(1, 1)), false);
    await folders.writeWhole(folders.state(1, 1), (folder) => writeFile(path.join(folder, "whole"), "y"));
    assert.deepEqual(await states(folders), ["1-1"]);
    assert.deepEqual(await readdir(folders.absolute(folders.state(1, 1))), ["whole"]);
  });

  for (const code of ["ENOSPC", "EDQUOT", "EACCES", "EPERM", "EROFS", "EIO", "ESTALE", "ENOTCONN"]) {
    test(`a folder that is refused by ${code} is reported with what to do, and leaves no files`, async () => {
      await using root = await temporaryFolder();
      const folders = new RunFolders(root.path, "test-1");
      const refused = folders.writeWhole(folders.state(1, 1), async (folder) => {
        await writeFile(path.join(folder, "half"), "x");
        const cause = Object.assign(new Error(`${code}: refused`), { code });
        throw new Error("the engine cannot write", { cause });
      });
      await assert.rejects(refused, (error: unknown) => {
        assert.ok(error instanceof FolderRefusedError);
        assert.match(
          error.message,
          new RegExp(`state/1-1 cannot be used now \\(${code}\\); .* goes on by itself`),
        );
        return true;
      });
      assert.deepEqual(await states(folders), []);
    });
  }

  test("a folder that is written again replaces the earlier one", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "test-1");
    for (const text of ["first", "second"]) {
      await folders.writeWhole(folders.tokenizer, (folder) => writeFile(path.join(folder, "a"), text));
    }
    assert.equal(await readFile(path.join(folders.absolute(folders.tokenizer), "a"), "utf8"), "second");
  });

  test("when two owners write the same checkpoint, one finishes it and the other changes nothing", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "run-1");
    await folders.writeCheckpoint(2, 1, async (slow) => {
      await writeFile(path.join(slow, "weights"), "of the first");
      await folders.writeCheckpoint(2, 2, (fast) => writeFile(path.join(fast, "weights"), "of the second"));
    });
    const checkpoint = folders.absolute(folders.checkpoint(2));
    assert.equal(await readFile(path.join(checkpoint, "weights"), "utf8"), "of the second");
    assert.deepEqual(await readdir(path.dirname(checkpoint)), ["step-2"]);
  });

  test("removeOldStates() keeps the committed state, the one before, and what an owner of another epoch is writing", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "test-1");
    await makeState(folders, "3-1", "4-1", "5-1", "5-2", "6-1", ".new-6-1", ".new-6-2", "6-3", ".new-6-3");
    await folders.removeOldStates({
      committed: folders.state(5, 2),
      recovery: undefined,
      oldestVersion: 4,
      epoch: 2,
    });
    assert.deepEqual(await states(folders), [".new-6-2", ".new-6-3", "4-1", "5-2", "6-3"]);
  });

  test("removeOldCheckpoints() keeps only the newest checkpoints", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "test-1");
    for (const step of [2, 10, 4]) {
      await folders.writeWhole(folders.checkpoint(step), (folder) => writeFile(path.join(folder, "a"), ""));
    }
    assert.deepEqual(await folders.checkpoints(), [2, 4, 10]);
    await folders.removeOldCheckpoints(2, 1);
    assert.deepEqual(await folders.checkpoints(), [4, 10]);
  });

  test("removeAll() leaves nothing of a run", async () => {
    await using root = await temporaryFolder();
    const folders = new RunFolders(root.path, "test-1");
    await makeState(folders, "0-1");
    await folders.removeAll();
    assert.deepEqual(await readdir(path.join(root.path, "runs")), []);
  });
});
