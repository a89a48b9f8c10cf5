import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  chmod,
  chown,
  link,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { ClosedFolder, PlantedFileError } from "./closed-folder.ts";

const MAX_BYTES = 100;
/** The id of an account other than the one that runs the tests. */
const OTHER = 65_534;
const isRoot = process.geteuid?.() === 0;
const text = (value: string) => [Buffer.from(value)];

async function inFolder(work: (folder: ClosedFolder, place: string) => Promise<void>): Promise<void> {
  await using around: TemporaryFolder = await temporaryFolder("closed");
  const place = path.join(around.path, "a", "b");
  await using folder = await ClosedFolder.open(place);
  await work(folder, place);
}

describe("ClosedFolder", () => {
  test("reads what it wrote, and returns undefined for a file that does not exist", () =>
    inFolder(async (folder) => {
      await folder.write("file", text("first"));
      await folder.write("file", [...text("sec"), ...text("ond")]);
      assert.equal(`${await folder.read("file", MAX_BYTES)}`, "second");
      assert.equal(await folder.read("none", MAX_BYTES), undefined);
    }));

  test("is closed to other accounts, as are its files, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      await inFolder(async (folder, place) => {
        await folder.write("file", text("mine"));
        const modes = [place, path.join(place, "file")].map(async (each) => (await stat(each)).mode & 0o7777);
        assert.deepEqual(await Promise.all(modes), [0o700, 0o600]);
      });
    } finally {
      process.umask(before);
    }
  });

  test("closes its own folder if it was open to other accounts", () =>
    inFolder(async (_, place) => {
      await chmod(place, 0o777);
      await using _again = await ClosedFolder.open(place);
      assert.equal((await stat(place)).mode & 0o7777, 0o700);
    }));

  for (const [what, plant] of Object.entries({
    "a link to a good file": (file: string, good: string) => symlink(good, file),
    "a link to a file that does not exist": (file: string) => symlink("/nowhere", file),
    "a hard link to a good file": (file: string, good: string) => link(good, file),
    "a file that others may read": (file: string) => writeFile(file, "planted", { mode: 0o644 }),
    "a file that others may write": async (file: string) => {
      await writeFile(file, "planted");
      await chmod(file, 0o622);
    },
    "a file with the set-user-id bit": async (file: string) => {
      await writeFile(file, "planted");
      await chmod(file, 0o4600);
    },
    "a named pipe that nobody writes to": async (file: string) => {
      execFileSync("mkfifo", ["-m", "600", file]);
    },
    "a folder": (file: string) => mkdir(file, { mode: 0o600 }),
    "a file that is too long": (file: string) => writeFile(file, "x".repeat(MAX_BYTES + 1), { mode: 0o600 }),
  })) {
    test(`does not read ${what}`, () =>
      inFolder(async (folder, place) => {
        await folder.write("good", text("good"));
        await plant(path.join(place, "file"), path.join(place, "good"));
        await assert.rejects(folder.read("file", MAX_BYTES), PlantedFileError);
      }));
  }

  test("does not read a file of another account", { skip: isRoot ? false : "only root can create one" }, () =>
    inFolder(async (folder, place) => {
      await folder.write("file", text("planted"));
      await chown(path.join(place, "file"), OTHER, OTHER);
      await assert.rejects(folder.read("file", MAX_BYTES), /belongs to account 65534/);
    }),
  );

  test(
    "does not use a folder of another account",
    {
      skip: isRoot ? false : "only root can create one",
    },
    () =>
      inFolder(async (_, place) => {
        await chown(place, OTHER, OTHER);
        await assert.rejects(ClosedFolder.open(place), /belongs to account 65534/);
      }),
  );

  test(
    "lets no other account plant, read or remove a file",
    {
      skip: isRoot ? false : "only root can act as another account",
    },
    () =>
      inFolder(async (folder, place) => {
        await folder.write("file", text("mine"));
        await chmod(path.dirname(place), 0o755);
        const asOther = (command: string) =>
          spawnSync("/bin/sh", ["-c", command], { cwd: "/", uid: OTHER, gid: OTHER }).status;
        assert.equal(asOther(`stat ${place}`), 0);
        for (const attack of ["echo planted > $F", "cat $F", "ln -s /etc/passwd $F.x", "rm -f $F", "ls $D"]) {
          const command = attack.replace("$F", path.join(place, "file")).replace("$D", place);
          assert.notEqual(asOther(command), 0, attack);
        }
        assert.equal(`${await folder.read("file", MAX_BYTES)}`, "mine");
      }),
  );

  test("does not use a link or a file instead of a folder", () =>
    inFolder(async (_, place) => {
      const beside = path.join(path.dirname(place), "beside");
      await symlink(place, beside);
      await assert.rejects(ClosedFolder.open(beside), /ENOTDIR|ELOOP/);
      await rm(beside);
      await writeFile(beside, "");
      await assert.rejects(ClosedFolder.open(beside), /EEXIST|ENOTDIR/);
    }));

  test("works in the folder that it opened, even when another folder takes its place", () =>
    inFolder(async (folder, place) => {
      const aside = path.join(path.dirname(place), "aside");
      await folder.write("file", text("mine"));
      await rename(place, aside);
      await mkdir(place, { mode: 0o700 });
      await writeFile(path.join(place, "file"), "planted", { mode: 0o600 });
      assert.equal(`${await folder.read("file", MAX_BYTES)}`, "mine");
      await folder.write("new", text("new"));
      assert.deepEqual(await readdir(place), ["file"]);
      assert.equal(await readFile(path.join(aside, "new"), "utf8"), "new");
    }));

  test("writing replaces a link and does not change the linked file", () =>
    inFolder(async (folder, place) => {
      const victim = path.join(path.dirname(place), "victim");
      await writeFile(victim, "untouched");
      await symlink(victim, path.join(place, "file"));
      await folder.write("file", text("mine"));
      assert.equal(await readFile(victim, "utf8"), "untouched");
      assert.equal(`${await folder.read("file", MAX_BYTES)}`, "mine");
    }));

  test("with several writers, a reader finds the whole file of one of them, or none", () =>
    inFolder(async (folder, place) => {
      const contents = Array.from({ length: 8 }, (_, i) => `${i}`.repeat(MAX_BYTES));
      const isWriting = Promise.all(contents.map((content) => folder.write("file", text(content))));
      for (let i = 0; i < 50; i++) {
        const read = await folder.read("file", MAX_BYTES);
        assert.ok(read === undefined || contents.includes(`${read}`), `${read}`);
      }
      await isWriting;
      assert.ok(contents.includes(`${await folder.read("file", MAX_BYTES)}`));
      assert.deepEqual(await readdir(place), ["file"]);
    }));

  test("a failed write leaves no file behind", () =>
    inFolder(async (folder, place) => {
      await mkdir(path.join(place, "file"));
      await assert.rejects(folder.write("file", text("mine")), /EISDIR|ENOTEMPTY|EEXIST/);
      assert.deepEqual(await readdir(place), ["file"]);
    }));

  test("keeps the newest files, and removes the unfinished files of writers that died", () =>
    inFolder(async (folder, place) => {
      const hourMs = 3_600_000;
      const ages = { a: 3, b: 2, c: 1, ".unfinished-x": 2, ".unfinished-y": 0 };
      for (const [name, hours] of Object.entries(ages)) {
        await folder.write(name, text(name));
        const at = new Date(Date.now() - hours * hourMs);
        await utimes(path.join(place, name), at, at);
      }
      await folder.keepNewest(2);
      assert.deepEqual((await readdir(place)).sort(), [".unfinished-y", "b", "c"]);
    }));
});
