import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { checkAnswers } from "./answers.ts";
import { checkCycles } from "./cycles.ts";
import { checkDependencies } from "./dependencies.ts";
import { checkGates } from "./gates.ts";
import { checkLayers } from "./layers.ts";
import { checkLayout } from "./layout.ts";
import { checkLockFile } from "./lock-file.ts";
import { checkServices } from "./services.ts";
import { checkTexts } from "./texts.ts";
import { findImports, type Package, type Rule, readWorkspace, type Workspace } from "./workspace.ts";

/** A package whose files are given as path within it -> text. */
function packageWith(folder: string, files: Record<string, string>, dependencies: string[] = []): Package {
  return {
    name: `@hone/${folder.split("/").at(-1)}`,
    folder,
    dependencies,
    exports: folder.startsWith("libs/") ? ["."] : [],
    files: Object.entries(files)
      .filter(([path]) => path.endsWith(".ts"))
      .map(([path, text]) => ({ path: `${folder}/${path}`, text, imports: findImports(text) })),
    paths: Object.keys(files),
  };
}

function workspaceOf(...packages: Package[]): Workspace {
  const files = packages.flatMap((each) => each.files);
  return { packages, rootDependencies: ["typescript"], looseFiles: [], texts: files, lock: { packages: {} } };
}

function messages(rule: Rule, ...packages: Package[]): string[] {
  return rule(workspaceOf(...packages)).map(({ path, message }) => `${path}: ${message}`);
}

const importing = (name: string) => `import { x } from "${name}";\n`;

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

describe("findImports()", () => {
  test("sees every form of import and no comment", () => {
    const text = [
      'import a from "one";',
      'import type { B } from "two";',
      "import {",
      "  c,",
      '} from "./three.ts";',
      'export { d } from "four";',
      'import "five";',
      'const e = await import("six");',
      'import.meta.resolve("seven");',
      '// import f from "commented";',
      '/** import g from "documented"; */',
    ].join("\n");
    const found = findImports(text);
    assert.deepEqual(
      found.map((each) => each.specifier),
      ["one", "two", "./three.ts", "four", "five", "six", "seven"],
    );
    assert.deepEqual(
      found.filter((each) => each.isTypeOnly).map((each) => each.specifier),
      ["two"],
    );
    assert.equal(found[2]?.line, 5);
  });
});

describe("layers", () => {
  const core = packageWith("libs/core", { "src/index.ts": "" });
  const config = packageWith("libs/config", { "src/index.ts": "" });
  const judge = packageWith("services/judge", { "src/main.ts": "" });

  test("refuse an import to the left", () => {
    const from = packageWith("libs/core", { "src/a.ts": importing("@hone/config") });
    assert.match(
      messages(checkLayers, from, config).join(),
      /to its right only: @hone\/config stands to its left/,
    );
  });

  test("refuse an import within a group", () => {
    const from = packageWith("libs/nn", { "src/a.ts": importing("@hone/config") });
    assert.match(messages(checkLayers, from, config).join(), /stands in its own group/);
  });

  test("let rl import core only", () => {
    const from = packageWith("libs/rl", { "src/a.ts": importing("@hone/config") + importing("@hone/core") });
    assert.deepEqual(messages(checkLayers, from, config, core), [
      "libs/rl/src/a.ts: @hone/rl imports @hone/core only: current value is @hone/config",
    ]);
  });

  test("refuse a service that imports a service, in tests as well", () => {
    const from = packageWith("services/trainer", { "src/a.test.ts": importing("@hone/judge") });
    assert.match(messages(checkLayers, from, judge).join(), /nobody imports a service/);
  });

  test("keep the test package out of production code", () => {
    const testing = packageWith("libs/testing", { "src/index.ts": "" });
    const from = packageWith("libs/core", {
      "src/a.ts": importing("@hone/testing"),
      "src/a.test.ts": importing("@hone/testing"),
    });
    assert.deepEqual(messages(checkLayers, from, testing), [
      "libs/core/src/a.ts: @hone/testing is for tests only",
    ]);
  });

  test("keep the helpers of a package's tests out of its production code", () => {
    const from = packageWith("services/trainer", {
      "src/db/a.ts": importing("../testing/world.ts"),
      "src/db/a.test.ts": importing("../testing/world.ts"),
      "src/testing/world.ts": importing("./more.ts"),
    });
    assert.deepEqual(messages(checkLayers, from), [
      "services/trainer/src/db/a.ts: services/trainer/src/testing/world.ts is for tests only",
    ]);
  });

  test("refuse a light package that becomes heavy through another", () => {
    const from = packageWith("libs/tokenizer", { "src/a.ts": importing("@hone/core") });
    const heavy = packageWith("libs/core", { "src/b.ts": importing("onnxruntime-node") });
    assert.match(
      messages(checkLayers, from, heavy).join(),
      /@hone\/tokenizer must stay light.*through @hone\/core/,
    );
  });

  test("refuse a package that stands nowhere", () => {
    assert.match(messages(checkLayers, packageWith("libs/novel", {})).join(), /stands in no layer/);
  });
});

describe("dependencies", () => {
  test("are declared when imported and imported when declared", () => {
    const from = packageWith("libs/core", { "src/a.ts": importing("zod") }, ["yaml"]);
    assert.deepEqual(messages(checkDependencies, from), [
      "libs/core/src/a.ts: zod is not declared in libs/core/package.json",
      "libs/core/package.json: declares yaml, which nothing in it imports",
    ]);
  });

  test("are entered by their exports", () => {
    const core = packageWith("libs/core", {});
    const from = packageWith(
      "libs/config",
      { "src/a.ts": importing("@hone/core/src/seed.ts"), "src/b.ts": importing("../../core/src/seed.ts") },
      ["@hone/core"],
    );
    assert.deepEqual(messages(checkDependencies, from, core), [
      "libs/config/src/a.ts: @hone/core exports .: current value is ./src/seed.ts",
      "libs/config/src/b.ts: reaches out of its package: ../../core/src/seed.ts",
    ]);
  });

  test("on Node's modules carry the prefix", () => {
    assert.match(
      messages(checkDependencies, packageWith("libs/core", { "src/a.ts": importing("fs") })).join(),
      /with node: fs/,
    );
  });
});

describe("cycles", () => {
  test("are found through several files, those of types among them", () => {
    const files = {
      "src/a.ts": importing("./b.ts"),
      "src/b.ts": importing("./c.ts"),
      "src/c.ts": 'import type { X } from "./a.ts";\n',
      "src/d.ts": importing("./a.ts"),
    };
    assert.deepEqual(messages(checkCycles, packageWith("libs/core", files)), [
      "libs/core/src/a.ts: imports itself: src/a.ts -> src/b.ts -> src/c.ts -> src/a.ts",
    ]);
  });
});

describe("services", () => {
  const found = (files: Record<string, string>) =>
    messages(checkServices, packageWith("services/judge", files)).join("\n");

  test("keep NATS, HTTP, SQL and the edges out of domain", () => {
    assert.match(found({ "src/domain/a.ts": importing("@nats-io/jetstream") }), /no NATS, HTTP or SQL/);
    assert.match(found({ "src/domain/a.ts": importing("@hone/storage") }), /no NATS, HTTP or SQL/);
    assert.match(found({ "src/domain/a.ts": importing("../db/rows.ts") }), /domain and errors\.ts only/);
    assert.equal(found({ "src/domain/a.ts": importing("../errors.ts") + importing("@hone/rl") }), "");
  });

  test("keep the edges apart and main.ts last", () => {
    assert.match(
      found({ "src/http/a.ts": importing("../db/rows.ts") }),
      /neither service\.ts nor another edge/,
    );
    assert.match(
      found({ "src/nats/a.ts": importing("../service.ts") }),
      /neither service\.ts nor another edge/,
    );
    assert.match(found({ "src/service.ts": importing("./main.ts") }), /nothing imports main\.ts/);
  });

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
    assert.match(index('export { a } from "./a.ts";'), /begins with a comment/);
    assert.match(index('/** Purpose. */\nexport * from "./a.ts";'), /re-exports by name/);
    assert.match(index("/** Purpose. */\nexport const a = 1;"), /holds re-exports only/);
    assert.equal(
      index('/** Purpose. */\nexport type { A } from "./a.ts";\nexport {\n  a,\n} from "./a.ts";\n'),
      "",
    );
  });

  test("wants short files with plain names and named exports", () => {
    const index = { "src/index.ts": "/** Purpose. */" };
    const found = (files: Record<string, string>) =>
      messages(checkLayout, packageWith("libs/core", { ...index, ...files })).join();
    assert.match(found({ "src/aB.ts": "" }), /kebab-case/);
    assert.match(found({ "src/a.ts": "export default 1;" }), /exports by name/);
    assert.match(found({ "src/a.ts": "1;\n".repeat(401) }), /split by concept/);
    assert.equal(found({ "src/a-b.int.test.ts": "1;\n".repeat(401) }), "");
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

test("readWorkspace() reads this repository", () => {
  const workspace = readWorkspace(join(import.meta.dirname, "..", ".."));
  const embedded = workspace.packages.find((each) => each.name === "@hone/embedded");
  assert.ok(embedded !== undefined);
  assert.ok(embedded.dependencies.includes("@hone/core"));
  assert.ok(embedded.files.some((file) => file.imports.some((each) => each.specifier === "@hone/core")));
  assert.ok(workspace.looseFiles.some((file) => file.path === "scripts/check-boundaries.ts"));
});
