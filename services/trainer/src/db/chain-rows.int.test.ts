/** The chain of a run's steps and the records of its tokens, on a real PostgreSQL. */

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { Outcome, Split } from "@hone/core";
import { ChainCheck, type ChainRow, type StepContent, sha256 } from "@hone/rl";
import { query, sql } from "@hone/storage";
import { contextOfTraceparent } from "@hone/telemetry";
import type { PolicyTokens, RolloutTokens } from "../domain/record/rollout-tokens.ts";
import type { RunRecord } from "../domain/run/run-record.ts";
import type { Commit } from "../domain/step/ledger.ts";
import { TrainerDatabase } from "../testing/trainer-database.ts";
import { readChain } from "./chain-rows.ts";
import { readGradients, readTokens } from "./token-rows.ts";

const SLOT = { split: Split.train, task: 0, index: 0 };

function commitOf(run: RunRecord, version: number, changes: Partial<Commit> = {}): Commit {
  return {
    runId: run.runId,
    epoch: run.epoch,
    version,
    isFirst: version === 0,
    stateFolder: `runs/${run.runId}/state/${version}-${run.epoch}`,
    stateDigest: `weights-${version}`,
    stateFiles: {
      "model.safetensors": sha256(`${version}`),
      "optimizer.safetensors": sha256(`moments ${version}`),
    },
    isWhole: true,
    arithmetic: "two workers",
    trained:
      version === 0
        ? []
        : [
            {
              rollout: {
                slot: { ...SLOT, step: version },
                attempt: 2,
                outcome: Outcome.completed,
                scores: [],
                samples: [
                  { tokenIds: [1, 2], lossMask: Uint8Array.of(0, 1), logprobs: [-0.1], versions: [] },
                ],
                metrics: {},
                turnCount: 1,
                sequence: 17,
                resumption: 0,
                bytes: 1,
                durationMs: 1,
                trace: contextOfTraceparent(undefined),
              },
              reward: 0.1,
              advantage: 1 / 3,
              turnAdvantages: [1 / 3],
              tokenAdvantages: Float64Array.of(1 / 3),
            },
          ],
    leftOut:
      version === 0
        ? []
        : [
            {
              slot: { ...SLOT, step: version, index: 1 },
              attempt: 3,
              outcome: Outcome.infraFailed,
              why: "outcome",
              reason: 'the pod "p" was evicted: ä',
            },
          ],
    identity: { settings: "settings", tokenizer: "tokenizer" },
    weightsBefore: version === 0 ? "" : `weights-${version - 1}`,
    tokens: [],
    metrics: { loss: 1e-7, "reward/mean": 0.30000000000000004, "time/step_ms": 1e21 },
    troubles: { madeFor: "step", rollouts: 1, outcomes: [], tools: [] } as never,
    nextSequence: version * 10 + 1,
    ...changes,
  };
}

/** What a policy learnt from one rollout; both undefined = a run without roles. */
interface Learnt {
  readonly policy?: string;
  readonly role?: string;
}

function tokensOf(
  version: number,
  count: number,
  maxBytes = 2 ** 20,
  { policy, role }: Learnt = {},
): PolicyTokens {
  const column = Float32Array.from({ length: count }, (_, token) => token / 7);
  const rollout: RolloutTokens = {
    slot: { ...SLOT, step: version },
    role,
    reward: 0.1,
    shapedReward: 0.2,
    whitening: { mean: 0.5, scale: 2 },
    clip: undefined,
    sampleTokens: [count],
    tokenIds: Uint32Array.from(column.keys()),
    positions: Uint32Array.from(column.keys()),
    behaviourLogprobs: column,
    oldLogprobs: undefined,
    referenceLogprobs: undefined,
    advantages: 0.5,
    episode: 0.5,
    turns: 0,
    kl: 0,
    taught: 0,
    mean: 0.25,
    scale: undefined,
    weights: 0.125,
    corrections: undefined,
    passes: [
      {
        epoch: 0,
        minibatch: 1,
        logprobs: column,
        ratios: column,
        coefficients: column,
        pulls: column,
        cuts: Array.from(column, (_, token) => (token === 1 ? "clip_low" : "none")),
      },
    ],
  };
  return {
    policy,
    gradient: {
      updates: [],
      updateCount: 0,
      rollouts: 1,
      tokens: count,
      recordedRollouts: 1,
      recordedTokens: count,
      cuts: {},
      pull: 0.75,
      topRollouts: [],
      topTokens: [],
    },
    rollouts: [rollout],
    maxBytes,
  };
}

describe("the chain of steps", () => {
  let world: TrainerDatabase;
  before(async () => {
    world = await TrainerDatabase.open();
  });
  after(() => world?.close());
  beforeEach(() => world.clear());

  async function committed(versions: number, changes: (version: number) => Partial<Commit> = () => ({})) {
    const run = await world.claimedRun();
    for (let version = 0; version < versions; version++) {
      assert.ok(await world.ledger.commit(commitOf(run, version, changes(version))));
    }
    return run;
  }

  async function rowsOf({ runId }: RunRecord, from = 0): Promise<ChainRow[]> {
    const rows: ChainRow[] = [];
    for (let hasMore = true; hasMore; ) {
      const page = await readChain(world.database, runId, (rows.at(-1)?.version ?? from - 1) + 1);
      rows.push(...page.rows);
      ({ hasMore } = page);
    }
    return rows;
  }

  function checked(rows: readonly ChainRow[]) {
    const check = new ChainCheck();
    for (const row of rows) check.add(row);
    return check.result();
  }

  const execute = (statement: ReturnType<typeof sql>) => query(world.database, (db) => db.execute(statement));

  test("what was committed verifies when it is read, over several pages", async () => {
    const run = await committed(20);
    const rows = await rowsOf(run);
    const result = checked(rows);
    assert.equal(result.first, undefined);
    assert.equal(result.checked, 20);
    const content = JSON.parse(rows[3]!.contentJson) as StepContent;
    assert.equal(content.trained[0]?.advantage, 1 / 3);
    assert.deepEqual(content.leftOut, [{ slot: "train.3.0.1", outcome: "infra_failed", why: "outcome" }]);
  });

  test("two runs with the same steps have the same contents, whatever owners and attempts they had", async () => {
    const [one, other] = [await committed(3), await committed(3, () => ({ metrics: { loss: 2 } }))];
    const contents = async (run: RunRecord) => (await rowsOf(run)).map(({ content }) => content);
    assert.deepEqual(await contents(one), await contents(other));
    const rows = async (run: RunRecord) => (await rowsOf(run)).map(({ row }) => row);
    assert.notDeepEqual(await rows(one), await rows(other));
  });

  for (const [what, change] of [
    ["an attempt", (id: string) => sql`update ledger set attempt = 1 where run_id = ${id} and version = 2`],
    [
      "a token's advantage",
      (id: string) =>
        sql`update ledger set token_advantages = '\\x00000000' where run_id = ${id} and version = 2`,
    ],
    [
      "its tokens",
      (id: string) => sql`update ledger set tokens_digest = 'others' where run_id = ${id} and version = 2`,
    ],
    ["its owner", (id: string) => sql`update steps set epoch = 9 where run_id = ${id} and version = 2`],
    [
      "what went wrong",
      (id: string) => sql`update steps set troubles = null where run_id = ${id} and version = 2`,
    ],
    [
      "a left-out rollout",
      (id: string) =>
        sql`update steps set chain = jsonb_set(chain, '{leftOut}', '[]') where run_id = ${id} and version = 2`,
    ],
    [
      "the optimizer",
      (id: string) =>
        sql`update steps set chain = jsonb_set(chain, '{files,optimizer.safetensors}', '"others"') where run_id = ${id} and version = 2`,
    ],
    [
      "a rollout moved to another step",
      (id: string) => sql`update ledger set version = 2 where run_id = ${id} and version = 3`,
    ],
  ] as const) {
    test(`a row in which ${what} was changed does not verify`, async () => {
      const run = await committed(4);
      await execute(change(run.runId));
      assert.equal(checked(await rowsOf(run)).first?.version, 2);
    });
  }

  test("a run that an earlier release began goes on with a chain of its own", async () => {
    const run = await committed(2);
    await execute(sql`update steps set chain = null where run_id = ${run.runId}`);
    assert.ok(await world.ledger.commit(commitOf(run, 2)));
    assert.ok(await world.ledger.commit(commitOf(run, 3)));
    const result = checked(await rowsOf(run));
    assert.deepEqual([result.unchained, result.checked, result.first], [[0, 1], 2, undefined]);
  });

  test("a commit that is made again after its answer was lost changes nothing", async () => {
    const run = await committed(2, (version) => ({ tokens: version === 1 ? [tokensOf(1, 4)] : [] }));
    const before = await rowsOf(run);
    assert.equal(await world.ledger.commit(commitOf(run, 1, { tokens: [tokensOf(1, 4)] })), false);
    assert.deepEqual(await rowsOf(run), before);
  });

  test("the tokens of a rollout are read as they were recorded", async () => {
    const run = await committed(2, (version) => ({ tokens: version === 1 ? [tokensOf(1, 3)] : [] }));
    const gradients = await readGradients(world.database, run.runId, 1);
    assert.deepEqual(
      gradients.map(({ policy, pull }) => [policy, pull]),
      [["", 0.75]],
    );
    assert.deepEqual(await readGradients(world.database, run.runId, 0), []);
    const found = await readTokens(world.database, run.runId, "train.1.0.0");
    assert.ok("records" in found);
    const [tokens, ...others] = found.records;
    assert.ok(tokens !== undefined && others.length === 0);
    assert.deepEqual([tokens.version, tokens.shapedReward, tokens.whiteningScale], [1, 0.2, 2]);
    assert.deepEqual([tokens.advantages, tokens.means, tokens.scales], [[0.5], [0.25], []]);
    assert.deepEqual(tokens.behaviourLogprobs, [0, Math.fround(1 / 7), Math.fround(2 / 7)]);
    const [pass] = tokens.passes;
    assert.deepEqual(
      [...pass!.cuts].map((cut) => pass!.cutNames[cut]),
      ["none", "clip_low", "none"],
    );
  });

  test("the parts that two roles played of one rollout have a record each, and each policy a gradient", async () => {
    const learnt = [
      tokensOf(1, 3, 2 ** 20, { role: "white" }),
      tokensOf(1, 6, 2 ** 20, { role: "black", policy: "rival" }),
    ];
    const run = await committed(2, (version) => ({ tokens: version === 1 ? learnt : [] }));
    const gradients = await readGradients(world.database, run.runId, 1);
    assert.deepEqual(
      gradients.map(({ policy, tokens }) => [policy, tokens]),
      [
        ["", 3],
        ["rival", 6],
      ],
    );
    const found = await readTokens(world.database, run.runId, "train.1.0.0");
    assert.ok("records" in found);
    assert.deepEqual(
      found.records.map(({ role, policy, tokenIds }) => [role, policy, tokenIds.length]),
      [
        ["black", "rival", 6],
        ["white", "", 3],
      ],
    );
  });

  test("the bound counts the records of all policies, and a step's go together", async () => {
    const run = await committed(4, (version) => ({
      tokens:
        version === 0
          ? []
          : [
              tokensOf(version, 1_000, 70_000, { role: "white" }),
              tokensOf(version, 1_000, 70_000, { role: "black", policy: "rival" }),
            ],
    }));
    const rows = await execute(
      sql`select version, count(*)::int as parts from token_records where run_id = ${run.runId} group by version`,
    );
    assert.deepEqual(
      rows.map(({ version, parts }) => [version, parts]),
      [[3, 2]],
    );
    const gone = await readTokens(world.database, run.runId, "train.1.0.0");
    assert.match("absence" in gone ? gone.absence : "", /removed when those of the run took more than/);
  });

  test("beyond the bound the records of the oldest steps go, and what made their gradients stays", async () => {
    const one = tokensOf(1, 1_000);
    const run = await committed(6, (version) => ({
      tokens: version === 0 ? [] : [tokensOf(version, 1_000, 70_000)],
    }));
    const rows = await execute(
      sql`select version, octet_length(record) as bytes from token_records where run_id = ${run.runId} order by version`,
    );
    const sizes = rows.map(({ bytes }) => Number(bytes));
    assert.ok(sizes.length >= 2 && sizes.length < 5, `${sizes.length} steps are left`);
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= 70_000);
    assert.equal(rows.at(-1)?.version, 5, "the newest are kept");
    const [first] = await readGradients(world.database, run.runId, 1);
    assert.equal(first?.tokens, one.gradient.tokens);
    const gone = await readTokens(world.database, run.runId, "train.1.0.0");
    assert.match("absence" in gone ? gone.absence : "", /removed when those of the run took more than/);
    const never = await readTokens(world.database, run.runId, "train.9.0.0");
    assert.match("absence" in never ? never.absence : "", /was not trained by any step/);
  });
});
