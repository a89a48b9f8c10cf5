import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parseRunFile } from "@hone/config";
import { ValidateRequestSchema } from "@hone/proto-gen/run";
import { readConfig } from "../config.ts";
import { openRolloutParts } from "../open-rollout-parts.ts";
import { answerValidate } from "./answer-validate.ts";

/* Runs whose tasks an environment's server lists are checked without asking the server. */

async function problemsOf(config: object, settings: Record<string, string> = {}): Promise<string[]> {
  const source = { source: "environment_service", url: "http://127.0.0.1:1", envType: "words", config };
  const run = parseRunFile(
    JSON.stringify({
      name: "words",
      model: { path: "owner/name" },
      dataset: { train: source },
      agent: { name: "gym" },
      rollout: { tasksPerStep: 1, groupSize: 2 },
      trainer: { steps: 1, optimizer: { kind: "adamw", learningRate: 0.001 } },
    }),
  );
  await using parts = openRolloutParts(readConfig({ HONE_FILES: import.meta.dirname, ...settings }));
  const request = create(ValidateRequestSchema, { configJson: JSON.stringify(run) });
  const { problems } = await answerValidate(request, { ...parts, rowsOf: async () => [] });
  return problems.map(({ key, message }) => `${key}: ${message}`);
}

test("a run whose tasks a server lists is one of environments, and its agent plays them", async () => {
  assert.deepEqual(await problemsOf({ maxSteps: 5 }), []);
});

test("a wrong key of the environment is named below the source", async () => {
  const [problem = ""] = await problemsOf({ maxStep: 5 });
  assert.match(problem, /^dataset\.train\.config\.maxStep: .*maxSteps/);
});

test("a key variable that is not set, or not bound to the server, is refused before the run starts", async () => {
  const keyVariable = "HONE_ENDPOINT_KEY_GAMES";
  const set = { [keyVariable]: "secret" };
  const [unset = ""] = await problemsOf({ keyVariable });
  assert.match(unset, /^dataset\.train\.config\.keyVariable: .*not set for agent-rollout/);
  const [unbound = ""] = await problemsOf({ keyVariable }, set);
  assert.match(unbound, /bound to no host/);
  assert.deepEqual(await problemsOf({ keyVariable }, { ...set, [`${keyVariable}_HOSTS`]: "127.0.0.1" }), []);
});
