/** What attacks by JavaScript are after on this machine: a secret, folders, a port that counts who connects, and a process. */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type DenoOptions, findDeno, spawnDeno } from "../deno-process.ts";

/** What an attack says that reached what it was after. */
export const HAS_REACHED = /^REACHED$|default "canary"/m;
const MAX_PYTHON_BYTES = 256 * 1024 * 1024;
const VICTIMS_MODE = 0o644;

export class AttackGround {
  readonly #folder: string;
  readonly #server: Server;
  readonly #victim: ChildProcess;
  #numConnections = 0;

  private constructor() {
    this.#folder = mkdtempSync(path.join(tmpdir(), "hone-attacks-"));
    writeFileSync(path.join(this.#folder, "secret.js"), `export default "canary";\n`);
    process.env.HONE_TEST_CANARY = "canary";
    this.#server = createServer((socket) => {
      this.#numConnections++;
      socket.on("error", () => undefined).destroy();
    });
    this.#victim = spawn("/bin/sh", ["-c", "trap '' USR1; sleep 600 & wait; wait"], {
      detached: true,
      stdio: "ignore",
    });
  }

  static async open(): Promise<AttackGround> {
    const ground = new AttackGround();
    await new Promise<void>((resolve) => ground.#server.listen(0, "127.0.0.1", resolve));
    return ground;
  }

  close(): void {
    this.#server.close();
    if (this.#victim.pid !== undefined) process.kill(-this.#victim.pid, "SIGKILL");
    delete process.env.HONE_TEST_CANARY;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Runs an attack with every permission and nothing around it; returns what it said. */
  async runFreely(code: string): Promise<string> {
    const { source } = this.#program(code);
    const entry = `data:application/typescript;base64,${Buffer.from(source).toString("base64")}`;
    const flags = ["run", "--allow-all", "--no-config", "--no-lock", "--quiet"];
    const env = { DENO_DIR: path.join(this.#folder, "deno"), HONE_TEST_CANARY: "canary" };
    return told(spawn(findDeno(), [...flags, entry], { env }));
  }

  /** Runs an attack behind walls, and fails where it changed a file, ended the process or connected; returns what it said. */
  async runBehindWalls(
    code: string,
    walls: Pick<DenoOptions, "hasKernelWalls" | "permissions">,
  ): Promise<string> {
    const connectionsBefore = this.#numConnections;
    const { source, own } = this.#program(code);
    const said = await told(spawnDeno({ program: source, maxPythonBytes: MAX_PYTHON_BYTES, ...walls }));
    assert.deepEqual(readdirSync(own).sort(), ["store", "victim"], said);
    assert.equal(statSync(path.join(own, "victim")).mode & 0o777, VICTIMS_MODE);
    assert.equal(this.#victim.exitCode ?? this.#victim.signalCode, null);
    assert.equal(this.#numConnections, connectionsBefore);
    return said;
  }

  /** A folder of its own for each, and the attack as a program. */
  #program(code: string): { readonly source: string; readonly own: string } {
    const own = mkdtempSync(path.join(this.#folder, "own-"));
    writeFileSync(path.join(own, "victim"), "victim", { mode: VICTIMS_MODE });
    mkdirSync(path.join(own, "store"));
    const address = this.#server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const text = code
      .replaceAll(/SECRET\b/g, path.join(this.#folder, "secret.js"))
      .replaceAll("FOLDER", own)
      .replaceAll("PORT", `${port}`)
      .replaceAll("VICTIM", `${this.#victim.pid}`);
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
}

/** All that a process says until it ends. */
export async function told(child: ChildProcess): Promise<string> {
  let said = "";
  child.stdout?.on("data", (chunk) => (said += chunk));
  child.stderr?.on("data", (chunk) => (said += chunk));
  await new Promise((resolve) => child.once("close", resolve));
  return said;
}
