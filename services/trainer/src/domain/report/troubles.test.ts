import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { HashEngine } from "../../testing/hash-engine.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { RequestedControl } from "../run/requested-control.ts";
import { holdTenure } from "../run/run-tenure.ts";

const EVALUATED = {
  dataset: {
    train: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
    eval: { source: "environment", environment: "e", seeds: { from: 0, to: 9 } },
  },
};
const WARM = { warmStart: { kind: "sft", policy: "p", tasks: 4 } };

/** Runs to the end, with rollouts that fail as `failureOf` decides. */
async function play(changes: Record<string, unknown>, failureOf: MemoryWorld["failureOf"]) {
  await using root = await temporaryFolder("troubles");
  const world = new MemoryWorld(testRun({ config: testConfig(changes) }));
  world.failureOf = failureOf;
  const ending = await holdTenure(
    world.takeOver(),
    {
      stateRoot: root.path,
      ledger: world,
      jobs: world.jobs,
      rollouts: world,
      pipeline: world.pipeline,
      groupJudges: world.groupJudges,
      tasks: world,
      board: world.board,
      events: world.eventSink,
      createEngine: async () => new HashEngine(world),
      logger: silentLogger(),
    },
    {
      requested: new RequestedControl({ isCancelRequested: false, isPauseRequested: false }),
      ending: new AbortController(),
      stopping: new AbortController().signal,
    },
  );
  return { world, ending, reason: world.status?.endReason ?? "" };
}

const failure = (reason: string) => ({ outcome: "agent_failed", reason }) as const;

describe("a run whose rollouts all fail for one reason", () => {
  const places: readonly (readonly [madeFor: string, changes: Record<string, unknown>, split: string])[] = [
    ["step 1", {}, "train"],
    ["the evaluation of version 0", EVALUATED, "eval"],
    ["the warm start", WARM, "warm"],
  ];
  for (const [madeFor, changes, split] of places) {
    test(`is stopped with the reason, before the rollouts are used: ${madeFor}`, async () => {
      const { world, ending, reason } = await play(changes, (slot) =>
        slot.split === split ? failure(`port ${40_000 + slot.task} is closed`) : undefined,
      );
      assert.equal(ending, "failed");
      assert.match(
        reason,
        new RegExp(
          `^all ${split === "eval" ? 6 : 4} rollouts of ${madeFor} ended as agent_failed, .*port 40000 is closed`,
        ),
      );
      assert.equal(world.status?.phase, "failed");
      assert.equal(world.status?.troubles?.madeFor, madeFor);
      assert.equal(world.ledger.size, 0);
      assert.equal(world.records.length, 0);
      const ends = world.events.filter(({ event }) => event.kind === "ended");
      assert.deepEqual(
        ends.map(({ event }) => event.kind === "ended" && [event.phase, event.reason]),
        [["failed", reason]],
      );
    });
  }

  test("continues if the run file allows such rollouts, and reports at each step what went wrong", async () => {
    const rollout = { tasksPerStep: 2, groupSize: 2, onUniformFailure: "continue" };
    const { world, ending } = await play({ rollout }, () => failure("no such module"));
    assert.equal(ending, "completed");
    const steps = world.events.flatMap(({ event }) => (event.kind === "step" ? [event] : []));
    assert.deepEqual(
      steps.map(({ step, troubles }) => [step, troubles?.madeFor, troubles?.outcomes]),
      [1, 2, 3].map((step) => [
        step,
        `step ${step}`,
        [{ outcome: "agent_failed", count: 4, reason: "no such module", reasonCount: 4 }],
      ]),
    );
  });

  test("continues if one rollout completed or failed for another reason, and reports it", async () => {
    for (const [index, other] of [undefined, failure("the disk is full")].entries()) {
      const { world, ending } = await play({}, (slot) =>
        slot.task === 0 && slot.index === 0 ? other : failure("no such module"),
      );
      assert.equal(ending, "completed");
      assert.equal(world.status?.troubles?.outcomes[0]?.count, index === 0 ? 3 : 4);
      assert.equal(world.status?.troubles?.outcomes[0]?.reasonCount, 3);
    }
  });

  test("continues if only tools fail, and names them", async () => {
    const toolUses = [{ name: "search", calls: 2, failed: 2, error: "no index" }];
    const { world, ending } = await play({}, () => ({ outcome: "completed", toolUses }));
    assert.equal(ending, "completed");
    assert.deepEqual(world.status?.troubles?.tools, [{ name: "search", calls: 8, error: "no index" }]);
  });

  test("no longer names the failures once a step went well", async () => {
    const { world } = await play({}, ({ step, index }) =>
      step < 3 && index === 0 ? failure("lost") : undefined,
    );
    assert.equal(world.status?.troubles, undefined);
  });
});
