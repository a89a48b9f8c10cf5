import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parseRunFile } from "@hone/config";
import { ValidateRequestSchema } from "@hone/proto-gen/run";
import { temporaryFolder } from "@hone/testing";
import { readConfig } from "../config.ts";
import { openRolloutParts } from "../open-rollout-parts.ts";
import { answerValidate } from "./answer-validate.ts";

/* Validating the run files and rows of an attacker must start no program. */

const PATH = `${path.dirname(process.execPath)}:${process.env.PATH ?? ""}`;

describe("validating a run", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder("validate-starts-nothing");
  });
  after(() => folder[Symbol.asyncDispose]());
  const mark = (name: string) => path.join(folder.path, name);
  const isThere = (name: string) =>
    access(mark(name)).then(
      () => true,
      () => false,
    );
  /** A server of tools that leaves a file when it is started. */
  const server = (name: string) => ({
    command: path.basename(process.execPath),
    args: ["-e", "require('node:fs').writeFileSync(process.argv[1], '')", mark(name)],
  });
  const runFile = (agent: object) =>
    parseRunFile(
      JSON.stringify({
        name: "attack",
        model: { path: "owner/name" },
        dataset: { train: { source: "jsonl", path: "rows.jsonl" } },
        agent,
        rollout: { tasksPerStep: 1, groupSize: 2 },
        trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
      }),
    );
  const problemsOf = async (
    agent: object,
    settings: Record<string, string>,
    row: Record<string, unknown> = { prompt: "Hello" },
  ) => {
    const config = readConfig({ PATH, HONE_FILES: folder.path, ...settings });
    await using parts = openRolloutParts(config);
    const request = create(ValidateRequestSchema, { configJson: JSON.stringify(runFile(agent)) });
    const rowsOf = async () => [{ key: "dataset.train.path", rows: [{ id: "rows.jsonl:1", row }] }];
    const { problems } = await answerValidate(request, { ...parts, rowsOf });
    return problems.map(({ key, message }) => `${key}: ${message}`);
  };
  const YES = { HONE_ALLOW_COMMANDS: "yes", HONE_ALLOW_MODULES: "yes" };

  test("starts no server of tools, whether programs are refused or allowed", async () => {
    const agent = { name: "tool_agent", config: { mcpServers: { mine: server("by-run") } } };
    const [refused = ""] = await problemsOf(agent, {});
    assert.match(refused, /^agent\.config\.mcpServers\.mine\.command: .*HONE_ALLOW_COMMANDS=yes/);
    assert.deepEqual(await problemsOf(agent, YES), []);
    assert.equal(await isThere("by-run"), false);
  });

  test("starts no server of tools that the file of a row names", async () => {
    const config = { mcpServers: { mine: server("by-row") } };
    await writeFile(mark("tools.yaml"), JSON.stringify(config));
    const row = { prompt: "Hello", agent_name: "tool_agent", agent_cfg_path: "tools.yaml" };
    const [refused = ""] = await problemsOf({ name: "single_turn" }, {}, row);
    assert.match(refused, /^dataset\.train\.path: .*HONE_ALLOW_COMMANDS=yes/);
    assert.deepEqual(await problemsOf({ name: "single_turn" }, YES, row), []);
    assert.equal(await isThere("by-row"), false);
  });

  test("starts no agent that is a command of the run file or of a row's file", async () => {
    const command = [server("").command, ...server("command").args];
    for (const settings of [{}, YES]) {
      const problems = await problemsOf({ command }, settings);
      assert.equal(problems.length, settings === YES ? 0 : 1, String(problems));
    }
    await writeFile(mark("command.yaml"), JSON.stringify({ command }));
    const row = { prompt: "Hello", agent_name: "command", agent_cfg_path: "command.yaml" };
    const [refused = ""] = await problemsOf({ name: "single_turn" }, {}, row);
    assert.match(refused, /HONE_ALLOW_COMMANDS=yes/);
    assert.deepEqual(await problemsOf({ name: "single_turn" }, YES, row), []);
    assert.equal(await isThere("command"), false);
  });

  test("imports no module where modules are not allowed", async () => {
    const witness = mark("module");
    await writeFile(
      mark("agent.ts"),
      `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(witness)}, ""); export const agents = {};`,
    );
    const agent = { name: "single_turn", modules: ["agent.ts"] };
    const [refused = ""] = await problemsOf(agent, { HONE_ALLOW_COMMANDS: "yes" });
    assert.match(refused, /^agent\.modules: .*HONE_ALLOW_MODULES=yes/);
    assert.equal(await isThere("module"), false);
  });

  test("refuses a key that would go to another host than it is bound to", async () => {
    const keys = { HONE_TOOL_WEB: "secret", HONE_TOOL_WEB_HOSTS: "mcp.example.com" };
    const agent = (url: string) => ({
      name: "tool_agent",
      config: { mcpServers: { web: { url, headersFromEnv: { authorization: "HONE_TOOL_WEB" } } } },
    });
    assert.deepEqual(await problemsOf(agent("https://mcp.example.com/mcp"), keys), []);
    const [refused = ""] = await problemsOf(agent("https://evil.example/mcp"), keys);
    assert.match(refused, /add evil\.example to HONE_TOOL_WEB_HOSTS of agent-rollout/);
    const endpoint = { endpoint: "https://evil.example/play", keyVariable: "HONE_ENDPOINT_KEY" };
    const bound = { HONE_ENDPOINT_KEY: "k", HONE_ENDPOINT_KEY_HOSTS: "agents.internal" };
    assert.match((await problemsOf(endpoint, bound))[0] ?? "", /HONE_ENDPOINT_KEY_HOSTS of agent-rollout/);
  });
});
