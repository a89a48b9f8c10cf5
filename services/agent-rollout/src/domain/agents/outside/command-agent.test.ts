import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { AgentCatalog } from "@hone/agents";
import { BoundKeys, CodeGate } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import "../../built-ins.ts";
import { readOutsideResult } from "./outside-task.ts";

const keys = new BoundKeys(
  "HONE_ENDPOINT_KEY",
  { HONE_ENDPOINT_KEY_MINE: "k", HONE_ENDPOINT_KEY_MINE_HOSTS: "127.0.0.1" },
  "agent-rollout",
);
let filesFolder: string;

before(async () => {
  filesFolder = await mkdtemp(path.join(tmpdir(), "hone-commands-"));
  await writeFile(path.join(filesFolder, "agent.sh"), "true");
});
after(() => rm(filesFolder, { recursive: true }));

const prepare = (name: string, config: object, areCommandsAllowed = true) =>
  new AgentCatalog({
    filesFolder,
    gate: new CodeGate({
      filesFolder,
      commandEnvironment: areCommandsAllowed ? { PATH: process.env.PATH ?? "" } : undefined,
    }),
    outside: { keys },
  }).prepare({ name, configJson: JSON.stringify(config) });
const refusalOf = async (name: string, config: object, areCommandsAllowed?: boolean) => {
  try {
    await prepare(name, config, areCommandsAllowed);
  } catch (error) {
    if (error instanceof Error)
      return `${error instanceof InvalidInputError ? error.path : error.name}: ${error.message}`;
  }
  return "";
};

describe("external agents", () => {
  test("commands that exist and are allowed are accepted", async () => {
    for (const command of [["sh", "agent.sh"], ["./agent.sh"]])
      assert.equal(await refusalOf("command", { command }), "");
  });

  test("commands are refused where the operator does not allow them", async () => {
    assert.match(
      await refusalOf("command", { command: ["sh"] }, false),
      /^agent\.command: .*HONE_ALLOW_COMMANDS=yes/,
    );
  });

  test("a program that does not exist, or is not below the project folder, is refused", async () => {
    assert.match(
      await refusalOf("command", { command: ["no-such-program-of-hone"] }),
      /^agent\.command: .*no-such-program/,
    );
    assert.match(await refusalOf("command", { command: ["../../../bin/sh"] }), /agent\.command/);
    assert.match(await refusalOf("command", { command: ["./missing.sh"] }), /agent\.command/);
  });

  test("an endpoint whose key is not set is refused", async () => {
    const endpoint = "http://127.0.0.1:1/play";
    assert.equal(await refusalOf("endpoint", { endpoint, keyVariable: "HONE_ENDPOINT_KEY_MINE" }), "");
    assert.match(
      await refusalOf("endpoint", { endpoint, keyVariable: "HONE_ENDPOINT_KEY_NONE" }),
      /^agent\.keyVariable: /,
    );
  });

  test("a role with an external model is refused when the key is not set", async () => {
    const critic = (keyVariable: string) => ({
      learn: false,
      endpoint: { baseUrl: "http://127.0.0.1:1/v1", model: "large", keyVariable },
    });
    const roles = (keyVariable: string) => ({ solver: {}, critic: critic(keyVariable) });
    for (const agent of [{ command: ["sh"] }, { endpoint: "http://127.0.0.1:1/play" }]) {
      const [name = ""] = Object.keys(agent);
      assert.equal(await refusalOf(name, { ...agent, roles: roles("HONE_ENDPOINT_KEY_MINE") }), "");
      assert.match(
        await refusalOf(name, { ...agent, roles: roles("HONE_ENDPOINT_KEY_NONE") }),
        /^agent\.roles\.critic\.endpoint\.keyVariable: /,
      );
    }
  });

  test("a result is an object whose metrics are numbers, and everything else in it is metadata", () => {
    assert.deepEqual(readOutsideResult("", "it"), {});
    assert.deepEqual(readOutsideResult('{"metrics":{"a":1},"answer":"x"}', "it"), {
      metrics: { a: 1 },
      metadata: { answer: "x" },
    });
    for (const text of ["{", "[]", '"x"', '{"metrics":{"a":"1"}}']) {
      assert.throws(() => readOutsideResult(text, "it"), /^SyntaxError: it (is not JSON|must be an object)/);
    }
  });
});
