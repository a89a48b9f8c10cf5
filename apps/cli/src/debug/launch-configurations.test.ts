import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { REPOSITORY } from "../project.ts";

/* .vscode/launch.json must name existing commands and options. */

const run = promisify(execFile);
const MAIN = "apps/cli/src/main.ts";

interface Configuration {
  readonly name: string;
  readonly program?: string;
  readonly args?: readonly string[];
}

test("each launch configuration names an existing program and options that its command has", async () => {
  const text = await readFile(join(REPOSITORY, ".vscode", "launch.json"), "utf8");
  const { configurations, inputs } = JSON.parse(text) as {
    configurations: Configuration[];
    inputs: { id: string }[];
  };
  const ids = [...text.matchAll(/\$\{input:(\w+)\}/g)].map(([, id]) => id);
  assert.deepEqual([...new Set(ids)].sort(), inputs.map(({ id }) => id).sort());
  const commands = new Map<string, string>();
  for (const { name, program, args = [] } of configurations) {
    const path = program?.replace(/^\$\{workspaceFolder\}\//, "") ?? "";
    if (path === "" || path.includes("${")) continue;
    assert.ok(existsSync(join(REPOSITORY, path)), name);
    assert.equal(path, MAIN);
    const [command = "", ...rest] = args;
    if (!commands.has(command)) {
      const { stdout } = await run(process.execPath, [join(REPOSITORY, MAIN), command, "--help"], {
        env: { ...process.env, NO_COLOR: "1" },
      });
      commands.set(command, stdout);
    }
    for (const option of rest.filter((each) => each.startsWith("--"))) {
      assert.ok(commands.get(command)?.includes(option), `${name}: ${command} has no ${option}`);
    }
  }
  assert.deepEqual([...commands.keys()].sort(), ["debug", "run"]);
});
