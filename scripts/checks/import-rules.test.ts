import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { checkChains } from "./chains.ts";
import { type ImportGraph, readImportGraph } from "./import-graph.ts";
import { IMPORT_RULES } from "./import-rules.ts";
import { checkPackages } from "./packages.ts";
import type { Package, Problem, Workspace } from "./workspace.ts";

const importing = (...names: readonly string[]) =>
  names.map((name) => `import { x } from "${name}";\n`).join("");
const importingType = (name: string) => `import type { X } from "${name}";\n`;
const INSTALLED = ["zod", "hono", "onnxruntime-node", "@nats-io/jetstream", "typescript"];

/** Writes a tree of packages, with what they export linked into node_modules, and reads its imports. */
async function graphOf(files: Record<string, string>): Promise<ImportGraph> {
  await using folder = await temporaryFolder("imports");
  const write = async (file: string, text: string) => {
    await mkdir(path.dirname(path.join(folder.path, file)), { recursive: true });
    await writeFile(path.join(folder.path, file), text);
  };
  await write("package.json", JSON.stringify({ name: "tree", type: "module" }));
  for (const name of INSTALLED) {
    await write(`node_modules/${name}/package.json`, JSON.stringify({ name, main: "index.js" }));
    await write(`node_modules/${name}/index.js`, "");
  }
  await mkdir(path.join(folder.path, "node_modules/@hone"));
  for (const place of packagesOf(files)) {
    const name = nameOf(place);
    await write(
      `${place}/package.json`,
      JSON.stringify({
        name,
        type: "module",
        exports: { ".": "./src/index.ts", "./testing": "./src/testing.ts" },
      }),
    );
    await symlink(path.join(folder.path, place), path.join(folder.path, "node_modules", name));
  }
  for (const [file, text] of Object.entries(files)) await write(file, text);
  return readImportGraph(folder.path, IMPORT_RULES, [...new Set(Object.keys(files).map(topOf))]);
}

function packagesOf(files: Record<string, string>): string[] {
  const places = Object.keys(files).map(
    (file) => /^((libs|services|apps)\/[^/]+|test|bench)(?=\/)/.exec(file)?.[0] ?? "",
  );
  return [...new Set(places)].filter((place) => place !== "");
}

const nameOf = (place: string) => `@hone/${path.basename(place)}`;
const topOf = (file: string) => file.split("/")[0] ?? "";
const said = (problems: readonly Problem[]) => problems.map((each) => `${each.path}: ${each.message}`);
const problemsOf = async (files: Record<string, string>) => said((await graphOf(files)).problems);

/** What a package declares -> problems. */
async function checkedPackages(files: Record<string, string>, dependencies: readonly string[]) {
  const packages = packagesOf(files).map(
    (folder): Package => ({
      name: nameOf(folder),
      folder,
      dependencies,
      exports: ["."],
      files: [],
      paths: [],
    }),
  );
  const workspace: Workspace = {
    packages,
    rootDependencies: ["typescript"],
    looseFiles: [],
    texts: [],
    lock: { packages: {} },
  };
  return said(checkPackages(workspace, await graphOf(files)));
}

describe("circles", () => {
  test("are found through several files, those of types among them", async () => {
    const [first, ...more] = await problemsOf({
      "libs/core/src/a.ts": importing("./b.ts"),
      "libs/core/src/b.ts": importing("./c.ts"),
      "libs/core/src/c.ts": importingType("./a.ts"),
      "libs/core/src/d.ts": importing("./a.ts"),
    });
    assert.match(
      first ?? "",
      /no file imports itself.*a\.ts -> libs\/core\/src\/b\.ts -> libs\/core\/src\/c\.ts -> libs\/core\/src\/a\.ts/,
    );
    for (const each of more) assert.match(each, /no file imports itself/);
  });

  test("are found where a type is named in the middle of the code", async () => {
    const problems = await problemsOf({
      "libs/core/src/a.ts": importing("./b.ts"),
      "libs/core/src/b.ts": 'export type X = import("./a.ts").Y;\n',
    });
    assert.match(problems.join(), /no file imports itself/);
  });

  test("are found between the scripts, and in files with `using`", async () => {
    const problems = await problemsOf({
      "scripts/a.ts": `${importing("./b.ts")}export function f() {\n  using y = x();\n}\n`,
      "scripts/b.ts": importing("./a.ts"),
    });
    assert.match(problems.join(), /scripts\/a\.ts: no file imports itself/);
  });
});

describe("groups", () => {
  const index = { "libs/core/src/index.ts": "", "libs/config/src/index.ts": "" };

  test("let no package import one to the left, not for a type either", async () => {
    for (const text of [importing("@hone/config"), importingType("@hone/config")]) {
      const problems = await problemsOf({ ...index, "libs/core/src/a.ts": text });
      assert.match(
        problems.join(),
        /core\/src\/a\.ts: a package imports packages of groups to its right only/,
      );
    }
  });

  test("let no package import another one of its group", async () => {
    const problems = await problemsOf({ ...index, "libs/nn/src/a.ts": importing("@hone/config") });
    assert.match(problems.join(), /to its right only: it imports @hone\/config/);
  });

  test("let a package import those to its right", async () => {
    assert.deepEqual(
      await problemsOf({
        ...index,
        "services/judge/src/a.ts": importing("@hone/config", "@hone/core", "zod"),
      }),
      [],
    );
  });

  test("let rl import core only, and modules that are no package of the project", async () => {
    const problems = await problemsOf({
      ...index,
      "libs/telemetry/src/index.ts": "",
      "libs/rl/src/a.ts": importing("@hone/core", "zod"),
      "libs/rl/src/b.ts": importing("@hone/config"),
    });
    assert.ok(problems.every((each) => each.startsWith("libs/rl/src/b.ts")));
    assert.match(problems.join(), /rl and tokenizer import @hone\/core only/);
  });

  test("let no service import a service, in tests as well", async () => {
    const judge = { "services/judge/src/index.ts": "" };
    assert.match(
      (await problemsOf({ ...judge, "services/trainer/src/a.test.ts": importing("@hone/judge") })).join(),
      /a service imports no other service/,
    );
    assert.match(
      (await problemsOf({ ...judge, "libs/agents/src/a.test.ts": importing("@hone/judge") })).join(),
      /only the command line imports services/,
    );
    assert.deepEqual(await problemsOf({ ...judge, "apps/cli/src/a.ts": importing("@hone/judge") }), []);
  });

  test("let nobody import bench, and only bench import test", async () => {
    const packages = { "test/src/index.ts": "", "bench/src/index.ts": "" };
    const problems = await problemsOf({
      ...packages,
      "libs/core/src/a.test.ts": importing("@hone/test", "@hone/bench"),
    });
    assert.match(problems.join(), /nobody imports bench/);
    assert.match(problems.join(), /only bench imports test/);
    assert.deepEqual(await problemsOf({ ...packages, "bench/src/a.ts": importing("@hone/test") }), []);
  });

  test("keep what only tests need out of production", async () => {
    assert.deepEqual(
      await problemsOf({
        "libs/testing/src/index.ts": "",
        "libs/core/src/a.ts": importing("@hone/testing"),
        "libs/core/src/a.test.ts": importing("@hone/testing"),
      }),
      ["libs/core/src/a.ts: what only tests need stays out of production: it imports @hone/testing"],
    );
    assert.deepEqual(
      await problemsOf({
        "services/trainer/src/db/a.ts": importing("../testing/world.ts"),
        "services/trainer/src/db/a.test.ts": importing("../testing/world.ts"),
        "services/trainer/src/testing/world.ts": importing("./more.ts"),
        "services/trainer/src/testing/more.ts": "",
      }),
      [
        "services/trainer/src/db/a.ts: what only tests need stays out of production: it imports ../testing/world.ts",
      ],
    );
  });

  test("let no light package become heavy through another", async () => {
    const problems = await problemsOf({
      "libs/core/src/index.ts": importing("./b.ts"),
      "libs/core/src/b.ts": importing("onnxruntime-node"),
      "libs/tokenizer/src/a.ts": importing("@hone/core"),
    });
    assert.match(
      problems.join("\n"),
      /tokenizer\/src\/a\.ts: a light package stays light.*core\/src\/index\.ts -> libs\/core\/src\/b\.ts -> node_modules\/onnxruntime-node/,
    );
  });
});

describe("services", () => {
  const found = async (files: Record<string, string>) =>
    (
      await problemsOf(
        Object.fromEntries(Object.entries(files).map(([file, text]) => [`services/judge/src/${file}`, text])),
      )
    ).join("\n");

  test("keep NATS, HTTP, SQL and the edges out of domain", async () => {
    for (const name of ["@nats-io/jetstream", "hono", "node:http"])
      assert.match(
        await found({ "domain/a.ts": importing(name) }),
        /domain knows no NATS, HTTP or SQL/,
        name,
      );
    const storage = await problemsOf({
      "libs/storage/src/index.ts": "",
      "services/judge/src/domain/a.ts": importing("@hone/storage"),
    });
    assert.match(storage.join(), /domain knows no NATS, HTTP or SQL/);
    assert.match(
      await found({ "domain/a.ts": importing("../db/rows.ts"), "db/rows.ts": "" }),
      /domain imports domain and errors\.ts only/,
    );
    assert.equal(
      await found({ "domain/a.ts": importing("../errors.ts", "zod", "node:path"), "errors.ts": "" }),
      "",
    );
  });

  test("keep the edges apart and main.ts last", async () => {
    const rule = /http, nats and db know neither each other nor service\.ts/;
    assert.match(await found({ "http/a.ts": importing("../db/rows.ts"), "db/rows.ts": "" }), rule);
    assert.match(await found({ "nats/a.ts": importing("../service.ts"), "service.ts": "" }), rule);
    assert.equal(await found({ "nats/a.ts": importing("./more/b.ts"), "nats/more/b.ts": "" }), "");
    assert.match(
      await found({ "service.ts": importing("./main.ts"), "main.ts": "" }),
      /nothing imports main\.ts/,
    );
  });
});

describe("packages", () => {
  const core = { "libs/core/src/index.ts": "", "libs/core/src/seed.ts": "" };

  test("are entered by their exports", async () => {
    assert.deepEqual(
      await problemsOf({ ...core, "libs/config/src/a.ts": importing("@hone/core/src/seed.ts") }),
      [
        "libs/config/src/a.ts: what is imported must exist, and a package must export it: it imports @hone/core/src/seed.ts",
      ],
    );
    assert.deepEqual(
      await problemsOf({ ...core, "libs/config/src/b.ts": importing("../../core/src/seed.ts") }),
      [
        "libs/config/src/b.ts: a package is entered by its exports, not by a relative path: it imports ../../core/src/seed.ts",
      ],
    );
    assert.deepEqual(await problemsOf({ ...core, "libs/config/src/c.ts": importing("@hone/core") }), []);
  });

  test("declare what they import, and import what they declare", async () => {
    assert.deepEqual(await checkedPackages({ "libs/core/src/a.ts": importing("zod", "node:fs") }, ["yaml"]), [
      "libs/core/src/a.ts: zod is not declared in libs/core/package.json",
      "libs/core/package.json: declares yaml, which nothing in it imports",
    ]);
    assert.deepEqual(await checkedPackages({ "libs/core/src/a.test.ts": importing("typescript") }, []), []);
  });

  test("have a place in the order", async () => {
    assert.match(
      (await checkedPackages({ "libs/novel/src/a.ts": "" }, [])).join(),
      /libs\/novel: stands in no group/,
    );
  });
});

describe("chains", () => {
  /** A service of files that each import the next one. */
  const chainOf = (numFiles: number) =>
    Object.fromEntries(
      Array.from({ length: numFiles }, (_, i) => [
        `services/novel/src/f${i}.ts`,
        i === numFiles - 1 ? "" : importing(`./f${i + 1}.ts`),
      ]),
    );

  test("of imports inside a service have at most nine files", async () => {
    assert.deepEqual(checkChains(await graphOf(chainOf(9))), []);
    const [problem, ...more] = said(checkChains(await graphOf(chainOf(10))));
    assert.match(
      problem ?? "",
      /services\/novel: its longest chain of imports has 10 files.*src\/f0\.ts -> src\/f1\.ts/,
    );
    assert.deepEqual(more, []);
  });

  test("are not made longer by an import of types alone", async () => {
    const files = { ...chainOf(9), "services/novel/src/f.ts": importingType("./f0.ts") };
    assert.deepEqual(checkChains(await graphOf(files)), []);
  });
});
