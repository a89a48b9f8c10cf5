import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { SourceError } from "../errors.ts";
import { RowFiles } from "./row-files.ts";
import { fileSource } from "./sources/file-source.ts";

describe("RowFiles", () => {
  let folder: string;
  let root: string;
  let files: RowFiles;

  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "hone-jsonl-"));
    root = path.join(folder, "files");
    await mkdir(path.join(root, "data"), { recursive: true });
    await writeFile(path.join(folder, "secret.jsonl"), '{"secret":1}\n');
    files = new RowFiles({ root, cacheFolder: path.join(folder, "cache"), logger: silentLogger() });
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const put = (name: string, text: string) => writeFile(path.join(root, name), text);
  const refusal = (pattern: RegExp) => (error: unknown) => {
    assert.ok(error instanceof SourceError);
    assert.match(error.message, pattern);
    return true;
  };

  test("reads any rows of a file in the order asked for, with empty lines between them and no last newline", async () => {
    const rows = Array.from(
      { length: 1_000 },
      (_, i) => `${i % 7 === 0 ? "\n  \r\n" : ""}{"i":${i},"pad":"${"ü".repeat(i)}"}`,
    );
    await put("data/rows.jsonl", rows.join("\r\n"));
    const file = await files.open("data/rows.jsonl");
    assert.equal(file.size, 1_000);
    const wanted = [999, 0, 31, 32, 33, 500, 31];
    const found = await file.read(wanted);
    assert.deepEqual(
      found.map((row) => row.value.i),
      wanted,
    );
    assert.equal(found[1]!.line, 3);
  });

  test("names the file and the line of a broken row", async () => {
    await put("broken.jsonl", '{"a":1}\n\n{"a":\n{"a":3}\n');
    const source = fileSource([await files.open("broken.jsonl")]);
    assert.equal((await source.read([2]))[0]!.id, "broken.jsonl:4");
    await assert.rejects(source.read([0, 1]), refusal(/broken\.jsonl:3 is not a JSON object.*: \{"a":$/));
  });

  test("refuses a row that is not an object", async () => {
    await put("array.jsonl", "[1]\n");
    await assert.rejects(
      (await files.open("array.jsonl")).read([0]),
      refusal(/array\.jsonl:1 is not .*: \[1\]/),
    );
  });

  test("refuses an empty file", async () => {
    await put("empty.jsonl", "\n\n");
    const file = await files.open("empty.jsonl");
    assert.throws(
      () => fileSource([file]),
      refusal(/empty\.jsonl has 0 rows; give a file with at least one row/),
    );
  });

  test("refuses every path that leads out of its folder", async () => {
    await symlink(path.join(folder, "secret.jsonl"), path.join(root, "link.jsonl"));
    await symlink(folder, path.join(root, "up"));
    for (const named of [
      "../secret.jsonl",
      "/etc/passwd",
      "data/../../secret.jsonl",
      "link.jsonl",
      "up/secret.jsonl",
      "",
      "a\0b",
    ]) {
      await assert.rejects(files.open(named), SourceError, named);
    }
    await assert.rejects(files.open("data"), refusal(/must name a file/));
    await assert.rejects(files.open("nothing.jsonl"), refusal(/must exist below HONE_FILES/));
  });

  test("indexes a file again when it has changed, and only then", async () => {
    await put("grow.jsonl", '{"a":1}\n');
    const first = await files.open("grow.jsonl");
    assert.equal(await files.open("grow.jsonl"), first);
    await put("grow.jsonl", '{"a":1}\n{"a":2}\n');
    assert.equal((await files.open("grow.jsonl")).size, 2);
  });

  test("reads a line correctly that spans several reads of the disk", async () => {
    const long = "x".repeat(700_000);
    await put("long.jsonl", `{"a":"${long}"}\n{"a":"end"}\n`);
    const rows = await (await files.open("long.jsonl")).read([0, 1]);
    assert.equal(rows[0]!.value.a, long);
    assert.equal(rows[1]!.value.a, "end");
  });
});
