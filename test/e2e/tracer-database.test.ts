/**
 * The tracer's own database stops in the middle of a run whose episodes are several times the size that the bus may hold.
 * Training must not be affected, and the page must show afterwards how many rollouts it lacks.
 */

import assert from "node:assert/strict";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { DurableName, StreamName } from "@hone/messaging";
import { eventually, startPostgres, temporaryFolder } from "@hone/testing";
import { runToEnd } from "../support/follow.ts";
import { lakeRun } from "../support/lake-run.ts";
import { startStack, type TestStack } from "../support/stack.ts";

const STEPS = 16;
const RUN = { steps: STEPS, tasksPerStep: 4, minibatches: 1, warmStartTasks: 30, evalTasks: 4 };
/** Size of the stream of episodes: several steps of this run, but only a fraction of the run. */
const EPISODES_BYTES = 512 * 1024;
/** Rollouts of the training, in groups of the example's size, and of the warm start. */
const TRAINED = STEPS * RUN.tasksPerStep * 8 + RUN.warmStartTasks;
const DEADLINE_MS = 120_000;

interface ShownRun {
  readonly phase: string;
  readonly unreadRollouts: number;
}

describe("a tracer with a database of its own", { timeout: 300_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let database: Awaited<ReturnType<typeof startPostgres>>;
  let databaseFolder: string;
  let stack: TestStack;

  before(async () => {
    folder = await temporaryFolder("tracer-database");
    databaseFolder = path.join(folder.path, "database");
    database = await startPostgres({ folder: databaseFolder });
    stack = await startStack({ env: { HONE_TRACER_DATABASE_URL: database.url } });
    const { config } = await stack.bus.manager.streams.info(StreamName.episodes);
    await stack.bus.manager.streams.update(StreamName.episodes, { ...config, max_bytes: EPISODES_BYTES });
  });
  after(async () => {
    await stack?.[Symbol.asyncDispose]();
    await database?.stop();
    await folder?.[Symbol.asyncDispose]();
  });

  const page = async <Body>(route: string): Promise<Body | undefined> => {
    const answer = await stack.page(`/api${route}`, AbortSignal.timeout(8_000));
    return answer.ok ? ((await answer.json()) as Body) : undefined;
  };

  test("does not stop training when that database stops, and reports what it lost when it is back", async () => {
    const first = await runToEnd(stack, await lakeRun({ name: "calm", ...RUN, steps: 1 }), {
      deadlineMs: DEADLINE_MS,
    });
    await eventually(
      "the page to have the first run",
      async () => (await page<ShownRun>(`/runs/${first.runId}`))?.phase === "completed",
    );
    const tables =
      await stack.sql`select table_name from information_schema.tables where table_schema = 'tracer'`;
    assert.deepEqual([...tables], [], "the stack's own database has nothing of the tracer's");

    const port = Number(new URL(database.url).port);
    await database.stop();
    const run = await runToEnd(stack, await lakeRun({ name: "unseen", ...RUN }), { deadlineMs: DEADLINE_MS });
    const trained =
      await stack.sql`select count(*)::int as n from trainer.ledger where run_id = ${run.runId}`;
    assert.equal(trained[0]?.n, TRAINED);
    const { output } = await stack.hone("status");
    assert.match(output, /\d+ rollouts are missing on the page, because the tracer was too far behind/);

    database = await startPostgres({ folder: databaseFolder, port });
    await eventually(
      "the page to have the run",
      async () => (await page<ShownRun>(`/runs/${run.runId}`))?.phase === "completed",
      { deadlineMs: DEADLINE_MS },
    );
    await eventually(
      "a curve without a gap",
      async () => (await page<{ steps: number[] }>(`/runs/${run.runId}/steps`))?.steps.length === STEPS,
    );
    // Messages that it read while the database was down are redelivered in any order, so only the last number of lost rollouts counts.
    for (const [stream, durable] of [
      [StreamName.episodes, DurableName.scoredEpisodes],
      [StreamName.events, DurableName.events],
    ] as const) {
      await eventually(
        `the tracer to have read all of ${stream}`,
        async () => {
          const { num_pending, num_ack_pending } = await stack.bus.manager.consumers.info(stream, durable);
          return num_pending + num_ack_pending === 0;
        },
        { deadlineMs: DEADLINE_MS },
      );
    }
    const shown = await page<ShownRun>(`/runs/${run.runId}`);
    assert.ok(shown !== undefined);
    const counts = await page<{ counts: { split: string; count: number }[] }>(
      `/runs/${run.runId}/rollout-counts`,
    );
    const stored = (counts?.counts ?? []).reduce((sum, { count }) => sum + count, 0);
    assert.ok(stored > 0, "the newest rollouts were kept");
    const evaluated = run.evaluations.reduce((sum, { episodes }) => sum + episodes, 0);
    assert.ok(
      stored + shown.unreadRollouts >= TRAINED + evaluated,
      `${stored} are shown, ${shown.unreadRollouts} are said to be lost`,
    );
  });
});
