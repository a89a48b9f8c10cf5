import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { TaskSchema } from "@hone/proto-gen/dataset";
import { RenderRequestSchema } from "@hone/proto-gen/rollout";
import "../domain/built-ins.ts";
import { renderer } from "./answer-render.ts";

const answerRender = renderer({
  modules: { load: () => assert.fail("no module is loaded") },
  states: { get: async () => undefined },
});

async function problemOf(task: { environment: string; environmentConfigJson?: string }): Promise<string> {
  const request = create(RenderRequestSchema, { runId: "lake-1", task: create(TaskSchema, task) });
  return (await answerRender(request)).problem;
}

test("an episode that acted outside of agent-rollout is not played again", async () => {
  const environmentConfigJson = JSON.stringify({ url: "http://127.0.0.1:1", envType: "words" });
  assert.match(
    await problemOf({ environment: "environment_service", environmentConfigJson }),
    /its environment acts outside of agent-rollout/,
  );
  assert.match(await problemOf({ environment: "" }), /its task has no environment/);
  assert.equal(await problemOf({ environment: "frozen_lake", environmentConfigJson: "{}" }), "");
});
