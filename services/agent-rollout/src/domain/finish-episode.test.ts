import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import {
  type AgentRollout,
  EnvironmentRefusedError,
  InfrastructureError,
  register,
  registerEnvironment,
} from "@hone/agents";
import { Outcome } from "@hone/core";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";
import "./built-ins.ts";
import type { RolloutJob } from "./rollout-job.ts";
import { lakeJob, play, writes } from "./testing/lake-rollouts.ts";

/* Episodes that are still open when the agent returned, failed or reached a limit. */

let behave: (rollout: AgentRollout<unknown>) => Promise<object>;
let finish: () => Promise<number>;
let finished = 0;

register("finish_agent", {
  configSchema: z.strictObject({}),
  needsEnvironment: true,
  buildGraph: () => ({}),
  run: (_graph, rollout) => behave(rollout),
});
registerEnvironment("open_ended", {
  configSchema: z.strictObject({}),
  create: () => ({
    reset: () => ({ observation: "0", info: {} }),
    step: (action) => ({
      observation: "1",
      info: {},
      reward: 1,
      terminated: action === "end",
      truncated: action === "cut",
    }),
    finish: () => {
      finished++;
      return finish();
    },
    metrics: () => ({ finished }),
  }),
});

const rollout = (limits: Partial<RolloutJob["limits"]> = {}) =>
  play(
    lakeJob({
      agentName: "finish_agent",
      agentConfigJson: undefined,
      task: {
        id: "open_ended:1",
        environment: { name: "open_ended", seed: 1, configJson: "{}" },
        row: undefined,
      },
      limits: { ...lakeJob().limits, ...limits },
    }),
    writes("3"),
  );

/** Calls the model once and takes a step. */
async function act({ model, environment }: AgentRollout<unknown>, action: string): Promise<void> {
  await model.invoke([new HumanMessage("0")]);
  await environment?.step(action);
}

describe("Environment.finish()", () => {
  beforeEach(() => {
    finished = 0;
    finish = async () => 0.5;
    behave = async (each) => {
      await each.environment?.reset();
      await act(each, "on");
      return {};
    };
  });

  test("is called once where the agent returned and the episode was open; its reward goes to the last turn", async () => {
    const record = await rollout();
    assert.equal(finished, 1);
    assert.deepEqual(
      record.turns.map(({ reward }) => reward),
      [1.5],
    );
    assert.equal(record.environmentReturn, 1.5);
    assert.deepEqual(record.metrics, { finished: 1 });
  });

  test("is not called where the environment ended the episode, or none was begun", async () => {
    for (const action of ["end", "cut"]) {
      behave = async (each) => {
        await each.environment?.reset();
        await act(each, action);
        return {};
      };
      assert.equal((await rollout()).environmentReturn, 1);
    }
    behave = async () => ({});
    await rollout();
    assert.equal(finished, 0);
  });

  test("is called where a limit ended the rollout, whether or not the agent caught that", async () => {
    for (const isCaught of [false, true]) {
      behave = async (each) => {
        await each.environment?.reset();
        try {
          for (;;) await act(each, "on");
        } catch (error) {
          if (!isCaught) throw error;
          return {};
        }
      };
      const record = await rollout({ maxTurns: 2 });
      assert.equal(record.outcome, Outcome.truncated);
      assert.equal(record.environmentReturn, 2.5);
    }
    assert.equal(finished, 2);
  });

  test("is not called where the agent failed, or the rollout's time is over", async () => {
    behave = async (each) => {
      await each.environment?.reset();
      throw new Error("wrong");
    };
    assert.equal((await rollout()).outcome, Outcome.agentFailed);
    behave = async (each) => {
      await each.environment?.reset();
      return new Promise(() => undefined);
    };
    assert.equal((await rollout({ deadlineMs: 30 })).outcome, Outcome.timedOut);
    assert.equal(finished, 0);
  });

  test("repeats the attempt where it fails, also after a limit, which alone would be scored", async () => {
    let failures = 2;
    finish = async () => {
      if (failures-- > 0) throw new InfrastructureError("evaluate", "the server died", "ECONNRESET");
      return 0.5;
    };
    behave = async (each) => {
      await each.environment?.reset();
      for (;;) await act(each, "on");
    };
    const record = await rollout({ maxTurns: 1 });
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.failedAttempts.length, 2);
    assert.match(record.failedAttempts[0] ?? "", /the server died/);
    assert.equal(record.environmentReturn, 1.5);
  });

  test("does not outlive the rollout's time", async () => {
    finish = () => new Promise(() => undefined);
    assert.equal((await rollout({ deadlineMs: 30 })).outcome, Outcome.timedOut);
  });
});

test("a task that an environment refuses ends the rollout without another attempt", async () => {
  finish = () => Promise.reject(new EnvironmentRefusedError("it is unknown"));
  behave = async (each) => {
    await each.environment?.reset();
    return {};
  };
  const record = await rollout();
  assert.equal(record.outcome, Outcome.infraFailed);
  assert.match(record.reason, /cannot give this task: it is unknown/);
  assert.deepEqual(record.failedAttempts, []);
});
