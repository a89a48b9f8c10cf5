/**
 * A stack is protected against other accounts of the machine. They can connect to the port of the bus, and if they could
 * publish a run there, they could run a command as the stack's owner.
 *
 * If root runs the test, the attacker is a process of the account `nobody`. Otherwise the test checks the modes of files, and
 * connects to the bus without a password from the same account, as the bus cannot tell accounts apart.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { startStack, type TestStack } from "../support/index.ts";

const NOBODY = { uid: 65_534, gid: 65_534 };
const TIMEOUT_MS = 30_000;
/** Connects as a NATS client without a password, and publishes a run. Prints the server's answer. */
const PUBLISH = `exec 3<>/dev/tcp/127.0.0.1/"$1"
printf 'CONNECT {"verbose":false}\\r\\nPUB hone.v1.run.request 2\\r\\n{}\\r\\nPING\\r\\n' >&3
timeout 5 cat <&3`;

const isRoot = process.getuid?.() === 0;
/** Runs a program as `nobody` if this is root, because root may read everything. */
const asNobody = (program: string, ...args: string[]) =>
  spawnSync(program, args, {
    ...(isRoot ? NOBODY : {}),
    cwd: "/",
    encoding: "utf8",
    timeout: TIMEOUT_MS,
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
  });

describe("a stack and another account of the machine", () => {
  let stack: TestStack;

  before(async () => {
    stack = await startStack({
      // Folders and files that an earlier version or a wide umask left open.
      prepare: (stateFolder) => {
        for (const folder of ["", "logs", "ready", "nats"]) {
          mkdirSync(path.join(stateFolder, folder));
          chmodSync(path.join(stateFolder, folder), 0o755);
        }
        for (const file of [
          ...["logs/trainer.log", "nats/nats-server.log", "nats/nats-server.conf"],
          ...["ready/postgres.url", "service.env"],
        ]) {
          writeFileSync(path.join(stateFolder, file), "");
          chmodSync(path.join(stateFolder, file), 0o644);
        }
      },
    });
  });
  after(() => stack?.[Symbol.asyncDispose]());

  test("a run that is published without a password is refused", async () => {
    const port = new URL(addressOf("client")).port;
    const before = await stack.bus.manager.streams.info("RUNS");
    const said = asNobody("bash", "-c", PUBLISH, "bash", port);
    // The server closes at once, so its answer may be lost with the connection; but it never answers that it accepted anything.
    assert.match(said.stdout, /^$|Authorization Violation/, said.stderr);
    assert.doesNotMatch(said.stdout, /PONG|\+OK/);
    await assert.rejects(
      connect({ servers: `127.0.0.1:${port}`, reconnect: false }),
      /Authorization Violation/,
    );
    const { state } = await stack.bus.manager.streams.info("RUNS");
    assert.equal(state.last_seq, before.state.last_seq);
  });

  test("the owner publishes a run with the address of the user client", async () => {
    const { port, username, password } = new URL(addressOf("client"));
    const connection = await connect({ servers: `127.0.0.1:${port}`, user: username, pass: password });
    // This is no run file: the stream accepts it, and the trainer refuses it.
    const answer = await connection.request("hone.v1.run.request", "nothing", { timeout: TIMEOUT_MS });
    assert.match(answer.string(), /"stream":\s*"RUNS"/);
    await connection.close();
  });

  test("other accounts can read no file of the stack", (context) => {
    const inState = (name: string) => path.join(stack.stateFolder, name);
    const { mode } = statSync(stack.stateFolder);
    // If PostgreSQL runs as another account, its group may enter the folder, but not list it.
    assert.equal(mode & 0o767, 0o700, mode.toString(8));
    const secrets = [
      ...["stack.json", "stack.lock", "postgres/password", "nats/passwords.json"],
      ...["nats/nats-server.conf", "nats/nats-server.log", "postgres/postgres.log"],
      ...addressFiles(),
      ...readdirSync(inState("env")).map((name) => `env/${name}`),
      ...readdirSync(inState("logs")).map((name) => `logs/${name}`),
    ];
    for (const name of secrets) {
      assert.equal(statSync(inState(name)).mode & 0o077, 0, `${name} is open to other accounts`);
    }
    if (!isRoot) return context.skip("only root can act as another account; the modes were checked");
    for (const name of ["", "bus", "database", "env", ...secrets]) {
      const read = asNobody("ls", inState(name));
      assert.match(read.stderr, /Permission denied/, name);
    }
  });

  test("no process shows a password, and other accounts cannot read its environment", (context) => {
    const passwords = addressFiles().map(
      (name) => new URL(readFileSync(path.join(stack.stateFolder, name), "utf8")).password,
    );
    assert.ok(passwords.includes(readFileSync(path.join(stack.stateFolder, "postgres/password"), "utf8")));
    assert.equal(new Set(passwords).size, passwords.length);
    for (const password of passwords) assert.ok(password.length >= 20);
    const names = [...stack.serviceProcesses(), "supervisor", "nats-server", "postgres"];
    for (const name of names) {
      const shown = readFileSync(`/proc/${stack.pidOf(name)}/cmdline`, "utf8");
      for (const password of passwords) assert.ok(!shown.includes(password), name);
      if (isRoot) {
        const { stderr } = asNobody("cat", `/proc/${stack.pidOf(name)}/environ`);
        assert.match(stderr, /Permission denied/, name);
      }
    }
    if (!isRoot) context.diagnostic("only root can act as another account: environments were not tried");
  });

  test("the database requires its password", () => {
    const { port } = stack.sql.options;
    const url = `postgres://hone@127.0.0.1:${port}/hone`;
    const code = `import postgres from "postgres"; const sql = postgres(${JSON.stringify(url)}, { password: "x" });
      try { await sql\`select 1\`; console.log("open") } catch (error) { console.log(error.code) } finally { await sql.end() }`;
    const tried = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      cwd: path.join(import.meta.dirname, ".."),
      encoding: "utf8",
      timeout: TIMEOUT_MS,
    });
    assert.equal(tried.stdout.trim(), "28P01", tried.stderr);
  });

  test("only the trainer and the tracer have an address of the database, each with its own role", async () => {
    for (const name of stack.serviceProcesses()) {
      const lines = readFileSync(`/proc/${stack.pidOf(name)}/environ`, "utf8").split("\0");
      const found = lines.filter((line) => /DATABASE_URL(_FILE)?=./.test(line));
      const own = path.join(stack.stateFolder, "database", `${name}.url`);
      const keepsRows = ["trainer", "tracer"].includes(name);
      assert.deepEqual(found, keepsRows ? [`HONE_DATABASE_URL_FILE=${own}`] : [], name);
    }
    const inside = await stack.sql`
      select distinct application_name as service, usename as role from pg_stat_activity
      where application_name like 'hone-%' order by service`;
    assert.deepEqual(
      inside.map(({ service, role }) => [service, role]),
      [
        ["hone-tracer", "tracer"],
        ["hone-trainer", "trainer"],
      ],
    );
    // Files of an earlier version, with which services connected as the superuser.
    for (const name of ["ready/postgres.url", "service.env"])
      assert.equal(existsSync(path.join(stack.stateFolder, name)), false, name);
    assert.doesNotMatch(
      readFileSync(path.join(stack.stateFolder, "stack.json"), "utf8"),
      /postgres:\/\/\w+:/,
    );
  });

  const addressFiles = () =>
    ["bus", "database"].flatMap((server) =>
      readdirSync(path.join(stack.stateFolder, server)).map((name) => `${server}/${name}`),
    );
  const addressOf = (user: string) =>
    readFileSync(path.join(stack.stateFolder, "bus", `${user}.url`), "utf8");
});
