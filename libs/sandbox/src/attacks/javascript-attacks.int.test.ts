import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { findDeno, spawnDeno } from "../deno-process.ts";
import { kernelWalls } from "../kernel-walls.ts";
import { JAVASCRIPT_ATTACKS, WITHOUT_CONTROL } from "../testing/javascript-attacks.ts";

const HAS_REACHED = /^REACHED$|default "canary"/m;
const MAX_PYTHON_BYTES = 256 * 1024 * 1024;

/** Their failure does not say why: that nobody was reached is seen at the port. */
const FAILS_WITHOUT_REASON = new Set([
  "asks a name server",
  "imports from the network",
  "opens a web socket",
]);
/** What reaches nothing outside of the process, or no more than the names and sizes of files. */
const NOT_OF_THE_KERNEL = new Set([
  "asks whether a file is there",
  "changes its folder",
  "talks to its own inspector",
  "asks for the host's name",
  "opens a library",
  "opens a library by process",
  "makes a pointer",
  "loads an extension of SQLite",
  "asks for permissions",
  "makes code of text",
]);

describe("arbitrary JavaScript in the process of the sandbox", { timeout: 300_000 }, () => {
  let folder: string;
  let server: Server;
  let victim: ChildProcess;
  let numConnections = 0;
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "hone-attacks-"));
    writeFileSync(path.join(folder, "secret.js"), `export default "canary";\n`);
    process.env.HONE_TEST_CANARY = "canary";
    server = createServer((socket) => {
      numConnections++;
      socket.on("error", () => undefined).destroy();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    victim = spawn("/bin/sh", ["-c", "trap '' USR1; sleep 600 & wait; wait"], {
      detached: true,
      stdio: "ignore",
    });
  });
  after(() => {
    server.close();
    if (victim.pid !== undefined) process.kill(-victim.pid, "SIGKILL");
    delete process.env.HONE_TEST_CANARY;
    rmSync(folder, { recursive: true, force: true });
  });

  /** A folder of its own for each, and the attack as a program. */
  function program(code: string): { readonly source: string; readonly own: string } {
    const own = mkdtempSync(path.join(folder, "own-"));
    writeFileSync(path.join(own, "victim"), "victim", { mode: 0o644 });
    mkdirSync(path.join(own, "store"));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const text = code
      .replaceAll(/SECRET\b/g, path.join(folder, "secret.js"))
      .replaceAll("FOLDER", own)
      .replaceAll("PORT", `${port}`)
      .replaceAll("VICTIM", `${victim.pid}`);
    const source = `
      const isRefused = (error) =>
        /NotCapable|Requires .* access|not permitted|permission denied|EPERM|EACCES/i.test([error, error?.code, error?.cause].join(" "));
      const attack = async () => { ${text} };
      let told = "";
      try { told = (await Promise.race([attack(), new Promise((yes) => setTimeout(yes, 4_000))])) === true ? "REACHED" : "nothing"; }
      catch (error) { told = "refused: " + error?.message; }
      console.log(told);
      Deno.exit(0);`;
    return { source, own };
  }

  // Else an attack that is written wrongly would be held by its own mistake.
  for (const [what, code] of Object.entries(JAVASCRIPT_ATTACKS)) {
    test(`${what}: reached with every permission`, async () => {
      const { source } = program(code);
      const entry = `data:application/typescript;base64,${Buffer.from(source).toString("base64")}`;
      const flags = ["run", "--allow-all", "--no-config", "--no-lock", "--quiet"];
      const env = { DENO_DIR: path.join(folder, "deno"), HONE_TEST_CANARY: "canary" };
      assert.match(await told(spawn(findDeno(), [...flags, entry], { env })), HAS_REACHED);
    });
  }

  for (const [what, code] of Object.entries({ ...JAVASCRIPT_ATTACKS, ...WITHOUT_CONTROL })) {
    test(`${what}: held by the runtime alone`, async () => {
      const before = numConnections;
      const { source, own } = program(code);
      const said = await told(
        spawnDeno({ program: source, maxPythonBytes: MAX_PYTHON_BYTES, hasKernelWalls: false }),
      );
      assert.doesNotMatch(said, HAS_REACHED);
      assert.deepEqual(readdirSync(own).sort(), ["store", "victim"], said);
      assert.equal(statSync(path.join(own, "victim")).mode & 0o777, 0o644);
      assert.equal(victim.exitCode ?? victim.signalCode, null);
      assert.equal(numConnections, before);
    });
  }

  // As if the first wall were not there: the runtime has every permission, or an attacker runs code of the machine in it.
  for (const [what, code] of Object.entries(JAVASCRIPT_ATTACKS)) {
    if (NOT_OF_THE_KERNEL.has(what)) continue;
    test(`${what}: held by the kernel alone`, async (t) => {
      const { names } = await kernelWalls();
      if (names.length < 3) return t.skip(`this kernel has only: ${names.join(", ")}`);
      const connectionsBefore = numConnections;
      const { source, own } = program(code);
      const said = await told(
        spawnDeno({
          program: source,
          maxPythonBytes: MAX_PYTHON_BYTES,
          hasKernelWalls: true,
          permissions: ["--allow-all"],
        }),
      );
      if (!FAILS_WITHOUT_REASON.has(what)) assert.doesNotMatch(said, HAS_REACHED);
      assert.deepEqual(readdirSync(own).sort(), ["store", "victim"], said);
      assert.equal(victim.exitCode ?? victim.signalCode, null);
      assert.equal(numConnections, connectionsBefore);
    });
  }
});

async function told(child: ChildProcess): Promise<string> {
  let said = "";
  child.stdout?.on("data", (chunk) => (said += chunk));
  child.stderr?.on("data", (chunk) => (said += chunk));
  await new Promise((resolve) => child.once("close", resolve));
  return said;
}
