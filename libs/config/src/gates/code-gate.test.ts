import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { InvalidInputError } from "@hone/core";
import { ConfigError } from "../errors.ts";
import { CodeGate, readCodeGate } from "./code-gate.ts";

/* The attacker may publish run files, configurations of agents and rows. */

describe("the gate for programs and modules of users", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "hone-gate-"));
    await writeFile(path.join(folder, "agent.sh"), "true");
    await writeFile(path.join(folder, "agent.ts"), "export const agents = {};");
    await writeFile(path.join(folder, "data.json"), "{}");
    await symlink("/bin/sh", path.join(folder, "link.sh"));
  });
  after(() => rm(folder, { recursive: true }));
  const PATH = "/usr/bin:/bin";
  const SECRETS = { HONE_JUDGE_KEY: "k", HF_TOKEN: "t", HONE_DATABASE_URL: "d", AWS_SECRET_ACCESS_KEY: "a" };
  const gateOf = (settings: Record<string, string>) =>
    readCodeGate({ PATH, ...SECRETS, ...settings }, folder);
  const named = (program: string) => ({ program, args: ["-c", "true"], environment: { LEVEL: "3" } });

  test("refuses programs and modules unless the operator allows them, each with its own variable", async () => {
    const refuses = (work: Promise<unknown>, variable: string) =>
      assert.rejects(work, (error) => {
        assert.ok(error instanceof InvalidInputError);
        assert.match(
          error.message,
          new RegExp(`not allowed here; the operator allows them with ${variable}=yes`),
        );
        return true;
      });
    for (const settings of [{}, { HONE_ALLOW_COMMANDS: "no", HONE_ALLOW_MODULES: "" }]) {
      await refuses(gateOf(settings).program(named("sh"), "agent.command"), "HONE_ALLOW_COMMANDS");
      await refuses(gateOf(settings).module("agent.ts", "agent.modules"), "HONE_ALLOW_MODULES");
    }
    const commands = gateOf({ HONE_ALLOW_COMMANDS: "yes" });
    await commands.program(named("sh"), "agent.command");
    await refuses(commands.module("agent.ts", "agent.modules"), "HONE_ALLOW_MODULES");
    const modules = gateOf({ HONE_ALLOW_MODULES: "yes" });
    assert.deepEqual(Object.keys((await (await modules.module("agent.ts", "m")).load()) as object), [
      "agents",
    ]);
    await refuses(modules.program(named("sh"), "agent.command"), "HONE_ALLOW_COMMANDS");
    assert.throws(() => gateOf({ HONE_ALLOW_COMMANDS: "maybe" }), ConfigError);
  });

  test("gives a program its own variables and the listed ones, and none of the service's secrets", async () => {
    const program = await gateOf({ HONE_ALLOW_COMMANDS: "yes", LANG: "C" }).program(
      named("sh"),
      "agent.command",
    );
    assert.deepEqual(program.environment, { PATH, LANG: "C", LEVEL: "3" });
    assert.match(program.file, /^\/(usr\/)?bin\/sh$/);
    assert.equal(program.folder, folder);
  });

  test("refuses files outside of HONE_FILES, also if a link leads there", async () => {
    const gate = new CodeGate({ filesFolder: folder, commandEnvironment: { PATH }, areModulesAllowed: true });
    await gate.program(named("./agent.sh"), "agent.command");
    for (const outside of ["/bin/sh", "../../bin/sh", "./link.sh", "./missing.sh"]) {
      await assert.rejects(gate.program(named(outside), "agent.command"), ConfigError, outside);
      await assert.rejects(gate.module(outside, "agent.modules"), ConfigError, outside);
    }
    await assert.rejects(gate.program(named("no-such-program-of-hone"), "agent.command"), InvalidInputError);
    await assert.rejects(gate.module("data.json", "agent.modules"), /is not a module/);
  });
});
