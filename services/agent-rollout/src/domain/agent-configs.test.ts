import assert from "node:assert/strict";
import { mkdir, symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { AgentConfigs } from "./agent-configs.ts";
import { UnusableJobError } from "./errors.ts";

describe("AgentConfigs", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let files: string;
  before(async () => {
    folder = await temporaryFolder("agent-configs");
    files = path.join(folder.path, "files");
    await mkdir(files);
    await writeFile(path.join(folder.path, "secret.yaml"), "password: hidden\n");
    await symlink(path.join(folder.path, "secret.yaml"), path.join(files, "link.yaml"));
  });
  after(() => folder[Symbol.asyncDispose]());

  test("reads a YAML file below its folder, and reads it again when it has changed", async () => {
    const configs = new AgentConfigs(files);
    await writeFile(path.join(files, "agent.yaml"), "systemPrompt: Be brief.\n");
    assert.equal(await configs.at("agent.yaml"), '{"systemPrompt":"Be brief."}');
    await writeFile(path.join(files, "agent.yaml"), "systemPrompt: Be long.\n");
    await utimes(path.join(files, "agent.yaml"), 1, 1);
    assert.equal(await configs.at("agent.yaml"), '{"systemPrompt":"Be long."}');
  });

  for (const named of ["missing.yaml", "../secret.yaml", "link.yaml", "/etc/passwd", "list.yaml"]) {
    test(`refuses ${named} without revealing its content`, async () => {
      await writeFile(path.join(files, "list.yaml"), "- a\n");
      await assert.rejects(new AgentConfigs(files).at(named), (error) => {
        assert.ok(error instanceof UnusableJobError);
        assert.doesNotMatch(`${error.message}${String(error.cause)}`, /hidden|root:/);
        return true;
      });
    });
  }
});
