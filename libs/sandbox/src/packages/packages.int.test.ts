import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import path from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { temporaryFolder } from "@hone/testing";
import { PythonSandbox } from "../python-sandbox.ts";
import { Snapshots } from "../snapshot/snapshots.ts";
import { makeWheel } from "../testing/make-wheel.ts";
import { PackageFolder } from "./package-folder.ts";
import type { WheelSet } from "./wheel-set.ts";

const LIMITS = { timeMs: 60_000, maxOutputBytes: 4_000 };
const never = new AbortController().signal;

/** What a hostile package tries when it is imported, and again when it is called. */
const ATTACKS: Readonly<Record<string, string>> = {
  network: "import socket; socket.create_connection(('127.0.0.1', PORT), 2).send(b'x')",
  request: "import urllib.request; urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=2)",
  request_of_pyodide: "from pyodide.http import open_url; open_url('http://127.0.0.1:PORT/')",
  javascript: "import js",
  own_javascript: "from pyodide.code import run_js; run_js('1')",
  pyodide: "import pyodide_js",
  file: "open('/etc/passwd')",
  environment: "open('/proc/self/environ')",
  process: "import os; os.fork()",
  program: "import subprocess; subprocess.run(['ls'])",
  library: "import ctypes; ctypes.CDLL('libc.so.6').getpid()",
};

function hostileModule(port: number): string {
  const attempts = Object.entries(ATTACKS).map(
    ([name, code]) => `    try:
        ${code.replaceAll("PORT", `${port}`)}
        results[${JSON.stringify(name)}] = "went through"
    except BaseException as error:
        results[${JSON.stringify(name)}] = type(error).__name__`,
  );
  return `def attack():\n    results = {}\n${attempts.join("\n")}\n    return results\nimported = attack()\n`;
}

describe("packages in the sandbox", { timeout: 500_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let packages: PackageFolder;
  let sandbox: PythonSandbox;
  /** For code without packages; its snapshot is on disk already. */
  let bare: PythonSandbox;
  let server: Server;
  let numConnections = 0;
  before(async () => {
    server = createServer((socket) => {
      numConnections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    folder = await temporaryFolder("packages");
    const tiny = {
      "tiny/__init__.py": "from tiny.inner import double\n",
      "tiny/inner.py": "def double(x): return 2 * x\n",
    };
    for (const [name, files] of [
      ["tiny", tiny],
      ["hostile", { "hostile.py": hostileModule(port) }],
      ["broken", { "broken.py": "import nothing_of_this_name\n" }],
      ["lucky", { "lucky.py": "import random\n" }],
    ] as const) {
      await writeFile(path.join(folder.path, `${name}-1.0-py3-none-any.whl`), makeWheel({ name, files }));
    }
    packages = new PackageFolder(folder.path);
    sandbox = new PythonSandbox({ maxProcesses: 2, snapshots: new Snapshots({ folder: undefined }) });
    bare = new PythonSandbox({ maxProcesses: 1 });
  });
  after(async () => {
    server.close();
    await sandbox.close();
    await bare.close();
    await folder[Symbol.asyncDispose]();
  });

  /** All of these in one set, as making a snapshot takes seconds. */
  const mine = () => packages.choose(["tiny", "hostile", "lucky"].map((name) => ({ name })));
  async function run(set: WheelSet | undefined, code: string) {
    const session = set === undefined ? bare.open() : sandbox.open(set);
    try {
      const result = await session.run(code, LIMITS, never);
      assert.ok(result.kind === "finished", JSON.stringify(result));
      return result;
    } finally {
      session.close();
    }
  }

  test("code imports the packages of its session, and no other code does", async () => {
    const set = await mine();
    const { value, error } = await run(
      set,
      "import tiny\nfrom tiny import inner\n(tiny.double(21), inner.__name__)",
    );
    assert.deepEqual([value, error], ["(42, 'tiny.inner')", undefined]);
    assert.match((await run(undefined, "import tiny")).error ?? "", /ModuleNotFoundError/);
  });

  test("what code does to a package is gone in the next process", async () => {
    const set = await mine();
    await run(
      set,
      "import tiny\ntiny.double = lambda x: 0\nimport os\nos.remove('/packages/tiny-1.0-py3-none-any.whl')",
    );
    assert.equal((await run(set, "import tiny\ntiny.double(21)")).value, "42");
  });

  test("a hostile package reaches nothing, neither when it is imported nor when it is called", async () => {
    const code = "import hostile, json\njson.dumps([hostile.imported, hostile.attack()])";
    const { value, error } = await run(await mine(), code);
    assert.equal(error, undefined);
    const results = JSON.parse(value.slice(1, -1)) as Record<string, string>[];
    assert.equal(results.length, 2);
    for (const result of results) {
      assert.deepEqual(Object.keys(result), Object.keys(ATTACKS));
      for (const [attack, told] of Object.entries(result)) {
        // Pyodide's own sockets accept anything and lead nowhere: no connection arrives.
        if (attack === "network" && told === "went through") continue;
        assert.match(told, /Error/, `${attack}: ${told}`);
      }
    }
    assert.equal(numConnections, 0);
  });

  test("processes with the same packages do not draw the same random numbers", async () => {
    const set = await mine();
    const draw = async () => (await run(set, "import random\nrandom.random()")).value;
    assert.notEqual(await draw(), await draw());
  });

  test("a package that cannot be imported is refused with its error, and other code runs on", async () => {
    const session = sandbox.open(await packages.choose([{ name: "broken" }]));
    await assert.rejects(session.run("1", LIMITS, never), /nothing_of_this_name/);
    session.close();
    assert.equal((await run(undefined, "6 * 7")).value, "42");
  });

  describe("from PyPI", () => {
    /** Fetches wheels with pip into a folder of their own; skips the test where that is not possible. */
    async function fetched(t: TestContext, ...args: string[]): Promise<PackageFolder | undefined> {
      const own = path.join(folder.path, args[0] ?? "");
      try {
        const command = [
          "-m",
          "pip",
          "download",
          "--quiet",
          "--no-deps",
          "--only-binary=:all:",
          "-d",
          own,
          ...args,
        ];
        await promisify(execFile)("python3", command, { timeout: 120_000 });
        return new PackageFolder(own);
      } catch (error) {
        t.skip(
          `pip cannot fetch ${args.join(" ")}: ${error instanceof Error ? error.message.slice(0, 200) : error}`,
        );
        return undefined;
      }
    }

    test("sympy computes, with mpmath which it needs", async (t) => {
      const own = await fetched(t, "sympy", "mpmath");
      if (own === undefined) return;
      const set = await own.choose([{ name: "sympy" }]);
      assert.deepEqual(
        set.wheels.map(({ name }) => name),
        ["mpmath", "sympy"],
      );
      const code = "from sympy import *\nx = symbols('x')\n(solve(x**2 - 5*x + 6), integrate(x * exp(x), x))";
      assert.equal((await run(set, code)).value, "([2, 3], (x - 1)*exp(x))");
    });

    test("a wheel that was built for Pyodide computes", async (t) => {
      const platform = ["--platform", "pyemscripten_2026_0_wasm32", "--python-version", "3.14"];
      const built = await fetched(
        t,
        "pydantic-core",
        "typing-extensions",
        ...platform,
        "--abi",
        "cp314",
        "--abi",
        "none",
      );
      if (built === undefined) return;
      const set = await built.choose([{ name: "pydantic-core" }]);
      assert.deepEqual(
        set.wheels.map(({ isCompiled }) => isCompiled),
        [true, false],
      );
      const code =
        "from pydantic_core import SchemaValidator, core_schema\nSchemaValidator(core_schema.int_schema()).validate_python('42')";
      assert.equal((await run(set, code)).value, "42");
    });
  });
});
