import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type AgentRollout,
  type Environment,
  InfrastructureError,
  type Policy,
  PolicyUnavailableError,
  register,
  registerEnvironment,
} from "@hone/agents";
import { delay, Outcome, turnSeed } from "@hone/core";
import { FinishReason, OnNewVersion } from "@hone/rl";
import { EncodingLimitError } from "@hone/tokenizer";
import { HumanMessage } from "@langchain/core/messages";
import { z } from "zod";
import "./built-ins.ts";
import { RolloutCancelledError, ServiceStoppingError } from "./errors.ts";
import type { RolloutJob } from "./rollout-job.ts";
import { lakeJob, lakeTokenizer, play, writes } from "./testing/lake-rollouts.ts";

/** The behaviour of the test's agent and environment, which each test sets. */
let behaveAgent: (rollout: AgentRollout<unknown>) => Promise<object> = async () => ({});
let makeTestEnvironment: () => Environment;
let environmentsMade = 0;
let environmentsClosed = 0;

register("test_agent", {
  configSchema: z.strictObject({ factor: z.number().default(1) }),
  needsEnvironment: false,
  buildGraph: () => ({}),
  run: (_graph, rollout) => behaveAgent(rollout),
});
registerEnvironment("test_environment", {
  configSchema: z.strictObject({}),
  create: () => {
    environmentsMade++;
    return makeTestEnvironment();
  },
});

const testJob = (limits: Partial<RolloutJob["limits"]> = {}) =>
  lakeJob({
    agentName: "test_agent",
    agentConfigJson: undefined,
    task: { id: "row:1", environment: undefined, row: { question: "00" } },
    limits: { ...lakeJob().limits, ...limits },
  });

describe("runRollout()", () => {
  test("samples with seeds derived from run seed, slot and turn, for the group and versions of its job", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    await play(lakeJob(), policy);
    const { slot } = lakeJob();
    assert.deepEqual(
      policy.calls.map(({ seed }) => seed),
      policy.calls.map((_, turn) => turnSeed(7, slot, turn)),
    );
    for (const call of policy.calls) {
      assert.equal(call.groupId, "run-1/train.2.3");
      assert.deepEqual([call.lowestVersion, call.highestVersion], [4, 4]);
      assert.deepEqual(call.stopTokenIds, lakeTokenizer.stopTokenIds);
    }
  });

  test("asks for no version that is too far ahead of the rollout's first token", async () => {
    const policy = writes("<answer>Nowhere</answer>");
    const onNewVersion = OnNewVersion.keep;
    await play(lakeJob({ lowestVersion: 4, highestVersion: 100, maxStaleness: 2, onNewVersion }), policy);
    assert.ok(policy.calls.every((call) => call.onNewVersion === onNewVersion));
    assert.deepEqual(
      policy.calls.slice(0, 3).map(({ highestVersion, maxStaleness }) => [highestVersion, maxStaleness]),
      [
        [100, 2],
        [6, 2],
        [6, 2],
      ],
    );
  });

  test("ends as stale while a tool works, as soon as a version is published that makes the rollout too old", async () => {
    let publish: (version: number) => void = () => assert.fail("nobody listens");
    let isWatched = false;
    behaveAgent = async ({ model }) => {
      publish(9); // Nothing was sampled yet.
      await model.invoke([new HumanMessage("0")]);
      publish(6);
      await new Promise<void>((resolve) => setTimeout(resolve, 20));
      publish(7);
      return new Promise(() => undefined);
    };
    const record = await play(
      { ...testJob(), lowestVersion: 4, highestVersion: 100, maxStaleness: 2 },
      writes("3"),
      {
        onVersion: (listener) => {
          publish = listener;
          isWatched = true;
          return () => {
            isWatched = false;
          };
        },
      },
    );
    assert.equal(record.outcome, Outcome.stale);
    assert.match(record.reason, /its first token is of version 4/);
    assert.equal(isWatched, false);
  });

  test("repeats an attempt in a fresh environment with the same seeds after a failure outside the agent", async () => {
    let failures = 2;
    makeTestEnvironment = () => ({
      reset: () => ({ observation: "0", info: {} }),
      step: () => {
        if (failures-- > 0) throw new InfrastructureError("step", "the server does not answer", "503");
        return { observation: "1", info: {}, reward: 2, terminated: true, truncated: false };
      },
      metrics: () => ({ steps: 1 }),
      close: () => void environmentsClosed++,
    });
    behaveAgent = async ({ model, environment }) => {
      const { observation } = await environment!.reset();
      const { text } = await model.invoke([new HumanMessage(observation)]);
      await environment!.step(text);
      return { metrics: { answers: 1 }, metadata: { last: text } };
    };
    environmentsMade = 0;
    environmentsClosed = 0;
    const policy = writes("3");
    const asked = {
      ...testJob(),
      task: { id: "e", environment: { name: "test_environment", seed: 1, configJson: "" }, row: undefined },
    };
    const record = await play(asked, policy);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.attempt, 3);
    assert.equal(record.failedAttempts.length, 2);
    assert.match(record.failedAttempts[0]!, /the server does not answer/);
    assert.deepEqual(record.metrics, { steps: 1, answers: 1 });
    assert.deepEqual(record.metadata, { last: "3" });
    assert.equal(record.environmentReturn, 2);
    assert.equal(record.turns.length, 1);
    assert.equal(environmentsMade, 3);
    assert.equal(environmentsClosed, 3);
    assert.equal(new Set(policy.calls.map(({ seed }) => seed)).size, 1);
    assert.equal(new Set(policy.calls.map(({ sessionId }) => sessionId)).size, 3);
  });

  test("ends as infra_failed when every attempt failed outside the agent, even if the agent catches the error", async () => {
    makeTestEnvironment = () => ({
      reset: () => {
        throw new InfrastructureError("reset", "the server does not answer", "503");
      },
      step: () => assert.fail(),
      metrics: () => ({}),
    });
    behaveAgent = async ({ environment }) => {
      await environment!.reset().catch(() => undefined);
      return { metrics: { success: 1 } };
    };
    const asked = {
      ...testJob({ maxAttempts: 2 }),
      task: { id: "e", environment: { name: "test_environment", seed: 1, configJson: "" }, row: undefined },
    };
    const record = await play(asked, writes(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.equal(record.attempt, 2);
    assert.equal(record.failedAttempts.length, 1);
  });

  test("ends as agent_failed without another attempt when the agent throws", async () => {
    behaveAgent = async () => {
      throw new RangeError("off by one");
    };
    const record = await play(testJob(), writes(""));
    assert.equal(record.outcome, Outcome.agentFailed);
    assert.equal(record.reason, "test_agent: off by one");
    assert.equal(record.attempt, 1);
  });

  test("ends as infra_failed after one attempt when the tokenizer's expressions take too long", async () => {
    let attempts = 0;
    behaveAgent = async () => {
      attempts++;
      throw new EncodingLimitError("5000 ms", "a text of 60 characters");
    };
    const record = await play(testJob(), writes(""));
    assert.equal(record.outcome, Outcome.infraFailed);
    assert.match(record.reason, /regular expressions of its tokenizer took more than 5000 ms/);
    assert.equal(attempts, 1);
  });

  test("ends as timed_out when the agent never returns, and aborts its signal", async () => {
    let aborted: AbortSignal | undefined;
    behaveAgent = ({ signal }) => {
      aborted = signal;
      return new Promise(() => undefined);
    };
    const record = await play(testJob({ deadlineMs: 30 }), writes(""));
    assert.equal(record.outcome, Outcome.timedOut);
    assert.ok(aborted!.aborted);
    assert.ok(record.durationMs >= 29 && record.durationMs < 5_000);
  });

  test("does not count the time of waiting for the policy", async () => {
    behaveAgent = async ({ model }) => {
      await model.invoke([new HumanMessage("0")]);
      return {};
    };
    const writer = writes("1");
    const slow: Policy = {
      generate: async (call) => {
        await delay(150);
        return writer.generate(call);
      },
    };
    const record = await play(testJob({ deadlineMs: 100 }), slow);
    assert.equal(record.outcome, Outcome.completed);
    assert.equal(record.generationMs, 1);
    assert.ok(record.durationMs < 100);
  });

  test("ends as truncated after one call more than the turns allow, even if the agent catches the error", async () => {
    behaveAgent = async ({ model }) => {
      for (let call = 0; call < 5; call++)
        await model.invoke([new HumanMessage(`${call}`)]).catch(() => undefined);
      return { metrics: { done: 1 } };
    };
    const record = await play(testJob({ maxTurns: 3 }), writes("1"));
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.turns.length, 3);
    assert.match(record.reason, /reached its limit of [0-9]+ turns/);
    assert.deepEqual(record.metrics, { done: 1 });
  });

  test("ends as truncated when the context is full, and cuts the last answer to what fits", async () => {
    behaveAgent = async ({ model }) => {
      const first = new HumanMessage("0000");
      const answer = await model.invoke([first]);
      await model.invoke([first, answer, new HumanMessage("1")]);
      return {};
    };
    const record = await play(testJob({ maxContextTokens: 9 }), writes("22222"));
    assert.equal(record.outcome, Outcome.truncated);
    assert.equal(record.turns.length, 1);
    assert.equal(record.turns[0]!.finishReason, FinishReason.length);
    assert.equal(record.samples[0]!.tokenIds.length, 9);
  });

  test("gives the agent an answer's token ids, logprobs and place in the record", async () => {
    let metadata: Record<string, unknown> = {};
    behaveAgent = async ({ model, task }) => {
      const answer = await model.invoke(String(task.row!.question));
      metadata = answer.response_metadata;
      return {};
    };
    await play(testJob(), writes("12"));
    const tokenIds = [...lakeTokenizer.encode("12<|end|>")];
    assert.deepEqual(metadata.tokenIds, tokenIds);
    assert.deepEqual(metadata.logprobs, [-0.25, -0.25, -0.25]);
    assert.deepEqual([metadata.turn, metadata.sample, metadata.finishReason], [0, 0, "stop"]);
  });

  test("ends as cancelled when the run is over, and gives the job back when the service stops", async () => {
    behaveAgent = () => new Promise(() => undefined);
    const cancelling = new AbortController();
    const cancelled = play(testJob(), writes(""), { signal: cancelling.signal });
    cancelling.abort(new RolloutCancelledError("run-1"));
    assert.equal((await cancelled).outcome, Outcome.cancelled);
    const stopping = new AbortController();
    const given = play(testJob(), writes(""), { signal: stopping.signal });
    stopping.abort(new ServiceStoppingError());
    await assert.rejects(given, ServiceStoppingError);
  });

  test("gives the job back without counting an attempt when no replica of the policy serves", async () => {
    behaveAgent = async ({ model }) => {
      await model.invoke([new HumanMessage("0")]);
      return {};
    };
    const away: Policy = {
      generate: async () => {
        throw new PolicyUnavailableError("none is known", 600_000);
      },
    };
    await assert.rejects(play(testJob(), away), PolicyUnavailableError);
  });

  test("ends as infra_failed at once, with the reason, when the parts of a job do not fit together", async () => {
    const noEnvironment = { id: "r", environment: undefined, row: {} };
    for (const [overrides, reason] of [
      [{ agentName: "frozen_lack" }, /did you mean "frozen_lake"/],
      [{ agentConfigJson: '{"historyTurn":1}' }, /agent\.historyTurn/],
      [{ scriptedPolicy: "random_leagl" }, /scripted policy "random_leagl" is unknown/],
      [{ task: noEnvironment }, /needs a task with an environment/],
      [
        { task: { ...noEnvironment, environment: { name: "pond", seed: 1, configJson: "" } } },
        /environment "pond" is unknown/,
      ],
      [
        {
          task: { ...noEnvironment, environment: { name: "frozen_lake", seed: 1, configJson: '{"size":1}' } },
        },
        /size/,
      ],
    ] as const) {
      const record = await play(lakeJob(overrides), writes(""));
      assert.equal(record.outcome, Outcome.infraFailed);
      assert.match(record.reason, reason);
    }
  });
});
