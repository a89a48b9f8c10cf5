import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { type Scrape, scrape } from "../support/inspect/scrape.ts";
import { lakeRun } from "../support/lake-run.ts";
import { SERVICES, startStack, type TestStack } from "../support/stack.ts";

/* Compares /metrics after a short run with the run's rows in the database. */

const RUN = { steps: 5, tasksPerStep: 4, minibatches: 1, warmStartTasks: 40, evalTasks: 4 };
/** Warm start, steps of four groups of eight, and two evaluations in two modes. */
const ROLLOUTS = 40 + RUN.steps * 4 * 8 + 2 * 4 * 2;

describe("/metrics after a run", { timeout: 180_000 }, () => {
  let stack: TestStack;
  let duringRun: Scrape | undefined;
  const of: Partial<Record<(typeof SERVICES)[number], Scrape>> = {};

  before(async () => {
    stack = await startStack();
    await runToEnd(stack, await lakeRun({ name: "measured", ...RUN }), {
      deadlineMs: 100_000,
      onEvent: async ({ kind }) => {
        if (kind.case === "phaseChanged") duringRun ??= await scrape(stack, "trainer");
      },
    });
    // The tracer stores rollouts later than the run makes them.
    await eventually("the tracer to have stored the run", async () => {
      const { sum } = await scrape(stack, "tracer");
      return sum("hone_messages_consumed_total", { consumer: "tracer-rollouts" }) === ROLLOUTS;
    });
    for (const service of SERVICES) of[service] = await scrape(stack, service);
  });
  after(() => stack?.[Symbol.asyncDispose]());

  const sum = (
    service: (typeof SERVICES)[number],
    name: string,
    labels: Readonly<Record<string, string>> = {},
  ) => of[service]?.sum(name, labels);

  test("every service has metrics of its readiness, its process and its event loop", () => {
    for (const service of SERVICES) {
      assert.equal(sum(service, "hone_service_ready", { service }), 1, service);
      assert.ok((sum(service, "process_resident_memory_bytes") ?? 0) > 10_000_000, service);
      assert.ok(sum(service, "nodejs_eventloop_lag_p99_seconds") !== undefined, service);
    }
  });

  test("every rollout is counted once by each service, and no queue holds any", () => {
    const figures = [
      sum("trainer", "hone_messages_published_total", { destination: "rollout.job" }),
      sum("agent-rollout", "hone_messages_consumed_total", { consumer: "agent-rollout" }),
      sum("agent-rollout", "hone_rollout_duration_seconds_count"),
      sum("agent-rollout", "hone_messages_published_total", { destination: "rollout.finished" }),
      sum("judge", "hone_messages_consumed_total", { consumer: "judge" }),
      sum("judge", "hone_judge_duration_seconds_count"),
      sum("judge", "hone_messages_published_total", { destination: "rollout.scored" }),
    ];
    assert.deepEqual(
      figures,
      figures.map(() => ROLLOUTS),
    );
    for (const [service, consumer] of [
      ["agent-rollout", "agent-rollout"],
      ["judge", "judge"],
      ["tracer", "tracer-rollouts"],
    ] as const) {
      for (const name of ["hone_consumer_pending", "hone_consumer_ack_pending", "hone_messages_in_work"]) {
        assert.equal(sum(service, name, { consumer }), 0, `${name} of ${consumer}`);
      }
    }
    assert.equal(sum("agent-rollout", "hone_rollouts_in_flight"), undefined);
    assert.equal(sum("inference-gateway", "hone_generations_in_flight"), undefined);
  });

  test("the engine counts the tokens in the ledger and those of the evaluations", async () => {
    const [row] = await stack.sql<{ tokens: number }[]>`
      select sum(sampled_tokens)::int as tokens from trainer.ledger where version > 0`;
    const sampled = sum("inference-gateway", "hone_engine_sampled_tokens_total") ?? 0;
    assert.ok(row !== undefined && row.tokens > 0 && sampled >= row.tokens, `${sampled} of ${row?.tokens}`);
    const calls = sum("agent-rollout", "hone_request_duration_seconds_count", {
      destination: "policy.generate",
      result: "ok",
    });
    assert.equal(sum("inference-gateway", "hone_generation_queue_seconds_count"), calls);
    assert.ok((sum("inference-gateway", "hone_engine_batch_size_sum") ?? 0) >= sampled);
    assert.equal(sum("inference-gateway", "hone_policy_load_seconds_count", { result: "ok" }), 1 + RUN.steps);
  });

  test("the trainer has metrics of a run while it is active, and of its steps afterwards", () => {
    assert.equal(duringRun?.sum("hone_run_phase", { run: "measured-1" }), 1);
    assert.equal(duringRun?.sum("hone_run_steps", { run: "measured-1" }), RUN.steps);
    assert.doesNotMatch(of.trainer?.text ?? "", /measured-1/);
    for (const phase of ["rollout", "train", "commit", "publish", "step"]) {
      assert.equal(sum("trainer", "hone_step_phase_seconds_count", { phase }), RUN.steps, phase);
    }
  });

  test("the tracer counts the spans that it received", () => {
    assert.ok((sum("tracer", "hone_spans_total", { result: "accepted" }) ?? 0) > ROLLOUTS);
    assert.equal(sum("tracer", "hone_spans_total", { result: "dropped" }), 0);
  });
});
