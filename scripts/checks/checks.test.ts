import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { checkAnswers } from "./answers.ts";
import { checkGates } from "./gates.ts";
import { checkLayout } from "./layout.ts";
import { checkLockFile } from "./lock-file.ts";
import { checkProcessUse } from "./process-use.ts";
import { checkSizes } from "./sizes.ts";
import { checkTexts } from "./texts.ts";
import { type Check, type Package, readWorkspace, type Workspace } from "./workspace.ts";

/** A package whose files are given as path within it -> text. */
function packageWith(folder: string, files: Record<string, string>, dependencies: string[] = []): Package {
  return {
    name: `@hone/${folder.split("/").at(-1)}`,
    folder,
    dependencies,
    exports: folder.startsWith("libs/") ? ["."] : [],
    files: Object.entries(files)
      .filter(([path]) => path.endsWith(".ts"))
      .map(([path, text]) => ({ path: `${folder}/${path}`, text })),
    paths: Object.keys(files),
  };
}

function workspaceOf(...packages: Package[]): Workspace {
  const files = packages.flatMap((each) => each.files);
  return { packages, rootDependencies: ["typescript"], looseFiles: [], texts: files, lock: { packages: {} } };
}

function messages(rule: Check, ...packages: Package[]): string[] {
  return rule(workspaceOf(...packages)).map(({ path, message }) => `${path}: ${message}`);
}

describe("checkGates()", () => {
  const found = (path: string, text: string) =>
    messages(
      checkGates,
      packageWith(path.split("/").slice(0, 2).join("/"), { [path.split("/").slice(2).join("/")]: text }),
    ).length;

  test("finds code that starts or imports what a user names and goes round the gate", () => {
    for (const text of [
      'import { spawn } from "node:child_process";',
      "await runProcessGroup({ command: config.command });",
      "new StdioClientTransport({ command: config.command });",
      "const made = await import(config.module);",
      "const made = await import(\n  folder + name);",
      "createRequire(import.meta.url)(name)",
      "new Worker(config.file)",
      "eval(text)",
      "new Function(text)",
      'import { runInNewContext } from "node:vm";',
    ]) {
      assert.equal(found("services/judge/src/domain/new.ts", text), 1, text);
    }
  });

  test("a starter of users' programs takes them from the gate", () => {
    const starter = "libs/agents/src/tools/mcp-tools.ts";
    assert.equal(found(starter, "new StdioClientTransport({ command });"), 1);
    const gated =
      "const { file } = await gate.program(named, key); new StdioClientTransport({ command: file });";
    assert.equal(found(starter, gated), 0);
  });

  test("leaves alone what names its code itself, tests, and comments", () => {
    const own =
      'await import("./x.ts"); new Worker(new URL("./worker.ts", import.meta.url)); pattern.exec(text);';
    assert.equal(found("services/judge/src/domain/new.ts", own), 0);
    assert.equal(found("services/judge/src/domain/new.ts", "// import(name)\n/** spawn, eval(text) */"), 0);
    assert.equal(found("services/judge/src/new.test.ts", 'import { spawn } from "node:child_process";'), 0);
  });
});

describe("process", () => {
  const found = (files: Record<string, string>) =>
    messages(checkProcessUse, packageWith("services/judge", files)).join("\n");

  test("let only main.ts and config.ts touch process", () => {
    assert.match(
      found({ "src/service.ts": "const home = process.env.HOME;" }),
      /only main\.ts and config\.ts/,
    );
    assert.equal(
      found({ "src/main.ts": "process.exit(1);", "src/a.ts": "// process.env is read in config.ts" }),
      "",
    );
  });
});

describe("layout", () => {
  test("wants the same files everywhere", () => {
    const problems = messages(
      checkLayout,
      packageWith("libs/core", {}),
      packageWith("services/judge", { "src/main.ts": "" }),
    );
    assert.match(problems.join("\n"), /libs\/core: has no src\/index\.ts/);
    assert.match(problems.join("\n"), /services\/judge: has no README\.md/);
  });

  test("wants an index of named re-exports with a purpose", () => {
    const index = (text: string) =>
      messages(checkLayout, packageWith("libs/core", { "src/index.ts": text })).join();
    assert.match(index('export { a } from "./a.ts";'), /does not begin with a comment/);
    assert.match(index('/** Purpose. */\nexport * from "./a.ts";'), /exports everything of a file/);
    assert.match(index("/** Purpose. */\nexport const a = 1;"), /has code of its own/);
    assert.equal(
      index('/** Purpose. */\nexport type { A } from "./a.ts";\nexport {\n  a,\n} from "./a.ts";\n'),
      "",
    );
  });

  test("wants plain names and named exports", () => {
    const index = { "src/index.ts": "/** Purpose. */" };
    const found = (files: Record<string, string>) =>
      messages(checkLayout, packageWith("libs/core", { ...index, ...files })).join();
    assert.match(found({ "src/aB.ts": "" }), /not in kebab-case/);
    assert.match(found({ "src/a.ts": "export default 1;" }), /has a default export; export it by name/);
    assert.equal(found({ "src/a-b.int.test.ts": "" }), "");
  });

  test("wants what tests share in testing.ts or testing/", () => {
    const index = { "src/index.ts": "/** Purpose. */" };
    const found = (...paths: readonly string[]) => {
      const files = Object.fromEntries(paths.map((path) => [path, ""]));
      return messages(checkLayout, packageWith("libs/core", { ...index, ...files })).join();
    };
    assert.match(
      found("src/db/testing-rows.ts"),
      /testing-rows\.ts: is shared by tests; name it testing\.ts/,
    );
    assert.match(found("src/testing.ts", "src/testing/rows.ts"), /src\/testing\.ts: stands beside a folder/);
    assert.equal(found("src/testing.ts", "src/db/testing/rows.ts", "src/db/testing/tables.ts"), "");
  });
});

describe("sizes", () => {
  const found = (...files: readonly [path: string, text: string][]) =>
    checkSizes({ ...workspaceOf(), texts: files.map(([path, text]) => ({ path, text })) }).map(
      ({ path, message }) => `${path}: ${message}`,
    );
  const long = "1;\n".repeat(401);

  test("refuse a file of more than 400 lines, of tests too, but not of fixtures or generated ones", () => {
    for (const path of ["libs/core/src/a.ts", "libs/core/src/a.test.ts", "services/judge/src/domain/b.py"])
      assert.deepEqual(found([path, long]), [
        `${path}: has 401 lines, and may have 400; split it by subject`,
      ]);
    assert.deepEqual(found(["libs/core/src/a.ts", long.slice(3)]), []);
    assert.deepEqual(found(["libs/core/src/fixtures/a.ts", long]), []);
    assert.deepEqual(found(["libs/proto-gen/src/gen/a.ts", long]), []);
  });

  test("refuse a folder of more than 15 files that are no tests", () => {
    const files = (count: number, end: string) =>
      Array.from({ length: count }, (_, i) => [`libs/core/src/a${i}${end}`, ""] as [string, string]);
    assert.match(found(...files(16, ".ts")).join(), /libs\/core\/src: holds 16 files, and may hold 15/);
    assert.deepEqual(found(...files(15, ".ts"), ...files(15, ".test.ts")), []);
  });

  test("tell of a reason that is needed no longer", () => {
    assert.match(found(["apps/cli/src/commands/run.ts", ""]).join(), /needs its reason .* no longer/);
  });
});

describe("answers", () => {
  const found = (text: string, file = "src/a.ts") =>
    messages(checkAnswers, packageWith("services/judge", { [file]: text })).length;

  test("are not read without a bound", () => {
    for (const method of ["text", "json", "arrayBuffer", "bytes", "blob", "formData"]) {
      assert.equal(found(`const read = await response.${method}();`), 1, method);
      assert.equal(found(`fetch(url).then((each) => each\n  .${method}());`), 1, method);
    }
    assert.equal(found("await (await fetch(url))?.json()"), 1);
  });

  test("are read by readText(); requests have the limit of their route, and tests ask whom they started", () => {
    assert.equal(found("await readText(response, MAX_BYTES); // response.text()"), 0);
    assert.equal(found("await c.req.text(); return c.json(value);"), 0);
    assert.equal(found("await response.json();", "src/a.test.ts"), 0);
  });
});

describe("texts", () => {
  const found = (text: string) => messages(checkTexts, packageWith("libs/core", { "src/a.ts": text })).join();

  test("name no path of one machine", () => {
    assert.match(found(`const path = "/${"root"}/clone";`), /path of one machine/);
    assert.equal(found(`const url = "https://example.org/${"work"}/x"; const path = "/var/lib/x";`), "");
  });

  test("leave nothing open", () => {
    assert.match(found(`// TO${"DO"}: later`), /leaves something open/);
  });
});

describe("lock file", () => {
  const HASH = `sha512-${"A".repeat(86)}==`;

  test("has the SHA-512 of every package that is fetched, also of those below another one", () => {
    const problemsOf = (packages: Workspace["lock"]["packages"]) =>
      checkLockFile({ ...workspaceOf(), lock: { packages } }).map(({ message }) => message);
    const kept = {
      "": {},
      "libs/core": {},
      "node_modules/@hone/core": { link: true },
      "node_modules/a": { integrity: HASH },
    };
    assert.deepEqual(problemsOf(kept), []);
    const [absent, nested, weak, ...more] = problemsOf({
      ...kept,
      "node_modules/b": {},
      "libs/core/node_modules/c": {},
      "node_modules/d": { integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" },
    });
    assert.match(absent ?? "", /has no integrity for node_modules\/b: take a version/);
    assert.match(nested ?? "", /no integrity for libs\/core\/node_modules\/c/);
    assert.match(weak ?? "", /has the integrity "sha1-/);
    assert.deepEqual(more, []);
  });

  test("names the optional packages of every platform", () => {
    const lock = {
      packages: {
        "node_modules/a": {
          optionalDependencies: { "a-linux": "1.0.0", "a-darwin": "1.0.0" },
          integrity: HASH,
        },
        "node_modules/a-linux": { integrity: HASH },
      },
    };
    const problems = checkLockFile({ ...workspaceOf(), lock });
    assert.equal(problems.length, 1);
    assert.match(problems[0]?.message ?? "", /lacks a-darwin, an optional dependency of node_modules\/a/);
  });
});

test("Biome refuses a module of Node that is named without node:", async () => {
  const root = join(import.meta.dirname, "..", "..");
  await using folder = await temporaryFolder("biome");
  const file = join(folder.path, "a.ts");
  const lint = async (text: string) => {
    await writeFile(file, text);
    const args = ["lint", "--colors=off", "--vcs-enabled=false", `--config-path=${root}`, file];
    const ran = spawnSync(join(root, "node_modules", ".bin", "biome"), args, { encoding: "utf8" });
    return { code: ran.status, output: ran.stdout + ran.stderr };
  };
  const refused = await lint('import { join } from "path";\n\nexport const x = join("a");\n');
  assert.match(refused.output, /useNodejsImportProtocol/);
  assert.equal(refused.code, 1);
  assert.equal((await lint('import { join } from "node:path";\n\nexport const x = join("a");\n')).code, 0);
});

test("readWorkspace() reads this repository", () => {
  const workspace = readWorkspace(join(import.meta.dirname, "..", ".."));
  const embedded = workspace.packages.find((each) => each.name === "@hone/embedded");
  assert.ok(embedded !== undefined);
  assert.ok(embedded.dependencies.includes("@hone/core"));
  assert.ok(workspace.looseFiles.some((file) => file.path === "scripts/check-boundaries.ts"));
});
