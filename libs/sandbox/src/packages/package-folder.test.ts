import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { PackageError } from "../errors.ts";
import { makeWheel } from "../testing/make-wheel.ts";
import { MAX_WHEEL_BYTES, PackageFolder, type WantedPackage } from "./package-folder.ts";
import { parseWheelName } from "./wheel-name.ts";

const TINY = makeWheel({ files: { "tiny.py": "x = 1\n" } });
const TINY_FILE = "tiny-1.0-py3-none-any.whl";
const shaOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const TAGS = { python: "cp314", abi: "2026_0" };

/** A folder with these files. */
async function folderOf(files: Readonly<Record<string, Uint8Array | string>>) {
  const folder = await temporaryFolder("wheels");
  for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder.path, name), content);
  return { folder, packages: new PackageFolder(folder.path) };
}

async function refusalOf(packages: PackageFolder, ...wanted: WantedPackage[]): Promise<PackageError> {
  try {
    await packages.choose(wanted);
  } catch (error) {
    assert.ok(error instanceof PackageError, String(error));
    return error;
  }
  return assert.fail("the packages were taken");
}

describe("PackageFolder", () => {
  test("gives a package with what it needs, and says of each file what it is", async () => {
    const metadata = ["Requires-Dist: tiny<2", "Requires-Dist: absent; sys_platform == 'win32'"];
    const needy = makeWheel({ name: "needy", files: { "needy.py": "import tiny\n" }, metadata });
    const { folder, packages } = await folderOf({
      [TINY_FILE]: TINY,
      "needy-1.0-py2.py3-none-any.whl": needy,
    });
    await using _ = folder;
    const set = await packages.choose([{ name: "Needy" }]);
    assert.deepEqual(set.materials, [`needy 1.0 sha256:${shaOf(needy)}`, `tiny 1.0 sha256:${shaOf(TINY)}`]);
    const again = await packages.choose([{ name: "needy", sha256: shaOf(needy) }, { name: "tiny" }]);
    assert.equal(again.key, set.key);
  });

  test("refuses a package that is not there, with the name that was meant", async () => {
    const { folder, packages } = await folderOf({ [TINY_FILE]: TINY });
    await using _ = folder;
    const { message, allowed } = await refusalOf(packages, { name: "tyny" });
    assert.match(message, /has no package tyny/);
    assert.match(allowed, /one of tiny \(did you mean "tiny"\?\)/);
    for (const name of ["../tiny", "tiny-1.0-py3-none-any.whl", ""]) await refusalOf(packages, { name });
  });

  test("refuses a package whose own needs are not there", async () => {
    const needy = makeWheel({
      name: "needy",
      files: { "needy.py": "" },
      metadata: ["Requires-Dist: gone>=1"],
    });
    const { folder, packages } = await folderOf({ "needy-1.0-py3-none-any.whl": needy });
    await using _ = folder;
    assert.match(
      (await refusalOf(packages, { name: "needy" })).message,
      /no package gone \(which needy needs\)/,
    );
  });

  test("refuses a wheel for another Python, and two wheels of one package", async () => {
    const { folder, packages } = await folderOf({
      "numpy-2.4.6-cp314-cp314-manylinux_2_27_x86_64.whl": TINY,
      [TINY_FILE]: TINY,
      "tiny-2.0-py3-none-any.whl": TINY,
    });
    await using _ = folder;
    assert.match(
      (await refusalOf(packages, { name: "numpy" })).message,
      /for another Python; the sandbox takes/,
    );
    assert.match((await refusalOf(packages, { name: "tiny" })).message, /two wheels of tiny/);
  });

  test("refuses a wheel whose digest is not the listed one, or not the one that the run wants", async () => {
    const sums = `${shaOf(TINY)}  ${TINY_FILE}\n`;
    const listed = await folderOf({ [TINY_FILE]: TINY, SHA256SUMS: sums });
    await using _listed = listed.folder;
    assert.equal((await listed.packages.choose([{ name: "tiny" }])).wheels.length, 1);
    const other = makeWheel({ files: { "tiny.py": "x = 2\n" } });
    await writeFile(path.join(listed.folder.path, TINY_FILE), other);
    assert.match((await refusalOf(listed.packages, { name: "tiny" })).message, /SHA256SUMS beside it says/);
    const unlisted = await folderOf({ [TINY_FILE]: TINY, SHA256SUMS: `${shaOf(TINY)}  other.whl\n` });
    await using _unlisted = unlisted.folder;
    assert.match((await refusalOf(unlisted.packages, { name: "tiny" })).message, /says nothing of it/);
    const pinned = { name: "tiny", sha256: "0".repeat(64) };
    assert.match(
      (await refusalOf(new PackageFolder(unlisted.folder.path), pinned)).message,
      /says nothing|wants 0000/,
    );
  });

  test("refuses a wheel that is too large without reading it, and a folder that is not there", async () => {
    const { folder, packages } = await folderOf({ [TINY_FILE]: TINY });
    await using _ = folder;
    await truncate(path.join(folder.path, TINY_FILE), MAX_WHEEL_BYTES + 1);
    assert.match((await refusalOf(packages, { name: "tiny" })).message, /at most 67108864 are allowed/);
    const gone = new PackageFolder(path.join(folder.path, "gone"));
    assert.match((await refusalOf(gone, { name: "tiny" })).message, /cannot be read/);
  });
});

describe("parseWheelName()", () => {
  for (const [fileName, kind] of [
    ["sympy-1.14.0-py3-none-any.whl", "pure"],
    ["six-1.17.0-py2.py3-none-any.whl", "pure"],
    ["a-1-1-py3-none-any.whl", "pure"],
    ["numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl", "compiled"],
    ["cryptography-46.0-cp311-abi3-pyodide_2026_0_wasm32.whl", "compiled"],
    ["numpy-2.4.6-cp313-cp313-pyemscripten_2025_0_wasm32.whl", "other"],
    ["numpy-2.4.6-cp313-cp313-pyemscripten_2026_0_wasm32.whl", "other"],
    ["later-1.0-cp315-abi3-pyemscripten_2026_0_wasm32.whl", "other"],
    ["old-1.0-py2-none-any.whl", "other"],
    ["../x-1.0-py3-none-any.whl", undefined],
    ["x-1.0-py3-none-any.whl.exe", undefined],
    ["x.whl", undefined],
    [`${"x".repeat(300)}-1.0-py3-none-any.whl`, undefined],
  ] as const) {
    test(`${fileName.slice(0, 60)} is ${kind ?? "no wheel"}`, () => {
      assert.equal(parseWheelName(fileName, TAGS)?.kind, kind);
    });
  }
});
