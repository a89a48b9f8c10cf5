import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { eventually } from "@hone/testing";

/*
 * The repository's bootstrap in a small repository of its own, with an npm that speaks npm's part: called as
 * `npm-cli.js ci …`, it fills node_modules and writes what happened into npm.log.
 */

const roots: string[] = [];
after(() => {
  for (const root of roots) rmSync(root, { recursive: true, force: true });
});

const FAKE_NPM = `
const fs = require("node:fs");
fs.appendFileSync("npm.log", process.argv.slice(2).join(" ") + " " + process.env.ONNXRUNTIME_NODE_INSTALL + "\\n");
if (fs.existsSync("npm-fails")) { console.error("npm error: the registry is away"); process.exit(1); }
const finish = () => {
  fs.mkdirSync("node_modules/one", { recursive: true });
  fs.writeFileSync("node_modules/one/package.json", "{}");
};
const parent = process.ppid;
// It hangs for as long as somebody could wait for it: the test that kills its parent leaves no process behind.
if (fs.existsSync("npm-hangs")) setInterval(() => process.ppid === parent || process.exit(1), 100);
else setTimeout(finish, 100);
`;

/** A repository whose lock file names one package and one that this platform does not have. */
function repository(): string {
  const root = mkdtempSync(join(tmpdir(), "hone bootstrap "));
  roots.push(root);
  mkdirSync(join(root, "scripts"));
  cpSync(join(import.meta.dirname, "bootstrap.mjs"), join(root, "scripts", "bootstrap.mjs"));
  writeFileSync(join(root, "npm-cli.js"), FAKE_NPM);
  writeFileSync(
    join(root, "package-lock.json"),
    JSON.stringify({
      packages: {
        "": {},
        "node_modules/one": { version: "1.0.0" },
        "node_modules/elsewhere": { version: "1.0.0", optional: true },
      },
    }),
  );
  writeFileSync(
    join(root, "program.ts"),
    "console.log('ran', ...process.argv.slice(2) as string[]); process.exitCode = 3;",
  );
  return root;
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function spawnStart(root: string, args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [join(root, "scripts", "bootstrap.mjs"), ...args], {
    cwd: tmpdir(),
    env: { ...process.env, npm_execpath: join(root, "npm-cli.js"), npm_lifecycle_event: undefined },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

async function ended(child: ChildProcess): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (data) => (stdout += String(data)));
  child.stderr?.on("data", (data) => (stderr += String(data)));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

const start = (root: string, ...args: string[]) => ended(spawnStart(root, ["program.ts", ...args]));
const installs = (root: string) => readFileSync(join(root, "npm.log"), "utf8").trim().split("\n");

describe("bootstrap.mjs", () => {
  test("installs once, runs the program with its arguments, and hands back its exit code", async () => {
    const root = repository();
    const first = await start(root, "a", "b c");
    assert.deepEqual([first.code, first.stdout], [3, "ran a b c\n"]);
    assert.match(installs(root)[0] ?? "", /^ci .* skip$/);
    const second = await start(root);
    assert.equal(installs(root).length, 1);
    assert.equal(second.stderr, "");
  });

  test("installs again when the lock file changed, and when a package is gone", async () => {
    const root = repository();
    await start(root);
    const lockFile = join(root, "package-lock.json");
    writeFileSync(lockFile, `${readFileSync(lockFile, "utf8")}\n`);
    await start(root);
    assert.equal(installs(root).length, 2);
    rmSync(join(root, "node_modules", "one"), { recursive: true });
    await start(root);
    assert.equal(installs(root).length, 3);
  });

  test("takes a developer's own npm install for done", async () => {
    const root = repository();
    mkdirSync(join(root, "node_modules", "one"), { recursive: true });
    writeFileSync(join(root, "node_modules", "one", "package.json"), "{}");
    writeFileSync(
      join(root, "node_modules", ".package-lock.json"),
      JSON.stringify({ packages: { "node_modules/one": { version: "1.0.0" } } }),
    );
    assert.equal((await start(root)).code, 3);
    assert.equal(existsSync(join(root, "npm.log")), false);
  });

  test("lets two starts at once install once", async () => {
    const root = repository();
    const both = await Promise.all([start(root), start(root)]);
    assert.deepEqual(
      both.map(({ code }) => code),
      [3, 3],
    );
    assert.equal(installs(root).length, 1);
  });

  test("shows npm's output when it fails, and installs at the next start", async () => {
    const root = repository();
    writeFileSync(join(root, "npm-fails"), "");
    const failed = await start(root);
    assert.equal(failed.code, 1);
    assert.match(failed.stderr, /the registry is away[\s\S]*npm ci ended with exit code 1/);
    rmSync(join(root, "npm-fails"));
    assert.equal((await start(root)).code, 3);
  });

  test("does a half-finished install again, and passes over the lock of a start that was killed", async () => {
    const root = repository();
    writeFileSync(join(root, "npm-hangs"), "");
    const killed = spawnStart(root, ["program.ts"]);
    await eventually("npm to run", () => existsSync(join(root, "npm.log")));
    killed.kill("SIGKILL");
    await ended(killed);
    assert.ok(existsSync(join(root, ".hone", "install.lock")));
    rmSync(join(root, "npm-hangs"));
    assert.equal((await start(root)).code, 3);
    assert.equal(installs(root).length, 2);
  });

  test("passes signals on to the program", async () => {
    const root = repository();
    writeFileSync(
      join(root, "program.ts"),
      "process.on('SIGTERM', () => { console.log('drained'); process.exit(0); }); setInterval(() => undefined, 1000); console.log('up');",
    );
    const child = spawnStart(root, ["program.ts"]);
    const result = ended(child);
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    child.kill("SIGTERM");
    const { code, stdout } = await result;
    assert.deepEqual([code, stdout], [0, "up\ndrained\n"]);
  });
});
