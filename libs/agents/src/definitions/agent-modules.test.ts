import assert from "node:assert/strict";
import { symlink, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { CodeGate } from "@hone/config";
import { InvalidInputError } from "@hone/core";
import { temporaryFolder } from "@hone/testing";
import { AgentCatalog } from "./agent-catalog.ts";
import { AgentModules } from "./agent-modules.ts";

/** A file outside this repository, in a folder without packages. */
const moduleText = (greeting: string) => `
import { buildToolbox, defineAgent, defineTool, toolConfigShape } from "@hone/agents";
import { z } from "zod";

export const agents = {
  greeter: defineAgent({
    configSchema: z.strictObject({ name: z.string().default("you"), ...toolConfigShape }),
    needsEnvironment: false,
    buildGraph: async (config, context) => ({
      text: ${JSON.stringify(greeting)} + config.name,
      tools: (await buildToolbox(config, context)).names,
    }),
    run: async () => ({}),
  }),
};
export const tools = {
  wave: defineTool({ name: "wave", description: "Waves", parameters: { type: "object" }, call: (): string => "~" }),
};
`;

describe("a run's own modules", () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  const gate = (areModulesAllowed = true) => new CodeGate({ filesFolder: folder.path, areModulesAllowed });
  const file = (name: string) => path.join(folder.path, name);
  before(async () => {
    folder = await temporaryFolder("modules");
    await writeFile(file("mine.ts"), moduleText("hello "));
    await writeFile(file("broken.ts"), "export const agents = {");
    await writeFile(file("other.ts"), "export const agents = { mine: { run: 1 } };");
    await symlink("/etc/passwd", file("link.ts"));
  });
  after(() => folder[Symbol.asyncDispose]());

  test("export agents and tools by name, and can import Hone's packages", async () => {
    const modules = await new AgentModules(gate()).load(["mine.ts"]);
    const catalog = new AgentCatalog({ filesFolder: folder.path, gate: gate() });
    const choice = { name: "greeter", configJson: '{"name":"lake","tools":["wave"]}', modules };
    const prepared = await catalog.prepare(choice);
    assert.deepEqual(prepared.graph, { text: "hello lake", tools: ["wave"] });
    assert.equal(await catalog.prepare(choice), prepared);
    await assert.rejects(catalog.prepare({ ...choice, name: "greetr" }), /did you mean "greeter"/);
    await assert.rejects(catalog.prepare({ name: "greeter", configJson: undefined }), InvalidInputError);
  });

  test("are imported again after they have changed", async () => {
    const modules = new AgentModules(gate());
    const catalog = new AgentCatalog({ filesFolder: folder.path, gate: gate() });
    const text = async () => {
      const loaded = await modules.load(["mine.ts"]);
      const { graph } = await catalog.prepare({ name: "greeter", configJson: undefined, modules: loaded });
      return (graph as { text: string }).text;
    };
    assert.equal(await text(), "hello you");
    await writeFile(file("mine.ts"), moduleText("bye "));
    await utimes(file("mine.ts"), 1, 1);
    assert.equal(await text(), "bye you");
  });

  test("are not imported if the operator does not allow it", async () => {
    await writeFile(file("loud.ts"), "globalThis.honeLoudModule = true; export const agents = {};");
    await assert.rejects(new AgentModules(gate(false)).load(["loud.ts"]), (error) => {
      assert.ok(error instanceof InvalidInputError);
      assert.equal(error.path, "agent.modules");
      assert.match(error.message, /HONE_ALLOW_MODULES=yes/);
      return true;
    });
    assert.equal("honeLoudModule" in globalThis, false);
    await new AgentModules(gate()).load(["loud.ts"]);
    assert.equal("honeLoudModule" in globalThis, true);
  });

  for (const [name, rule] of [
    ["missing.ts", /a file below HONE_FILES/],
    ["../mine.ts", /a file below HONE_FILES/],
    ["link.ts", /a file below HONE_FILES/],
    ["broken.ts", /a module that can be imported/],
    ["other.ts", /exports `agents`, `tools` or `environments`, but its export `agents\.mine\./],
  ] as const) {
    test(`${name} is refused with the key of the run file`, async () => {
      await assert.rejects(new AgentModules(gate()).load([name]), (error) => {
        assert.ok(error instanceof InvalidInputError);
        assert.equal(error.path, "agent.modules");
        assert.match(error.message, rule);
        return true;
      });
    });
  }
});
