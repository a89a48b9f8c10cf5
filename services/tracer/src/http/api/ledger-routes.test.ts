/** What the tracer answers of trained tokens, from what a trainer says. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { LedgerReplySchema } from "@hone/proto-gen/ledger";
import { createHttpApp } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import type { LedgerQuestion } from "../../domain/token-figures.ts";
import { addLedgerRoutes } from "./ledger-routes.ts";

type Answer = MessageInitShape<typeof LedgerReplySchema> | undefined;

/** Asks with a trainer that answers so. */
async function asked(path: string, answer: (question: LedgerQuestion) => Answer) {
  const app = createHttpApp(silentLogger());
  addLedgerRoutes(app, {
    store: { readRun: async () => undefined },
    tokenTexts: {
      of: async () => ({ textOf: (id) => (id === 7 ? "seven" : undefined), chatTemplate: undefined }),
    },
    askLedger: async (_run, question) => {
      const found = answer(question);
      return found && create(LedgerReplySchema, found);
    },
  });
  const response = await app.request(path);
  return { status: response.status, body: (await response.json()) as Body };
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is what the test looks at
type Body = any;

function gradients(...policies: readonly object[]) {
  return {
    gradientsJson: policies.map((policy) => JSON.stringify({ topTokens: [{ tokenId: 7 }], ...policy })),
  };
}

const TOKENS = "/runs/lake-1/rollouts/train.2.0.1/tokens";
const RECORD = {
  slot: "train.2.0.1",
  version: 2,
  reward: 1,
  shapedReward: 0.5,
  whiteningMean: 0.25,
  whiteningScale: 2,
  sampleTokens: [1, 2],
  tokenIds: [7, 8, 9],
  positions: [4, 4, 6],
  behaviourLogprobs: [-1, -2, -3],
  advantages: [0.5],
  episodeParts: [0.5, 0.25, 0.125],
  turnParts: [0],
  klParts: [0],
  taughtParts: [0],
  means: [0.75],
  weights: [0.1],
  passes: [
    {
      epoch: 0,
      minibatch: 1,
      logprobs: [-1, -2, -3],
      ratios: [1, 1, 0.5],
      coefficients: [-1, 0, 2],
      pulls: [-3, 0, 1],
      cuts: Uint8Array.of(0, 1, 0),
      cutNames: ["none", "clip_high"],
    },
  ],
};

describe("trained tokens by the API", () => {
  test("a rollout's tokens have their sample, text, parts and share of the step", async () => {
    const { status, body } = await asked(TOKENS, ({ kind }) =>
      kind === "tokens" ? { records: [RECORD] } : gradients({ policy: "", pull: 8 }),
    );
    assert.equal(status, 200);
    const [part, ...others] = body.parts;
    assert.deepEqual([body.step, part.role, part.policy, others], [2, null, null, []]);
    assert.deepEqual([part.share, part.advantageClip], [0.5, null]);
    assert.deepEqual(part.whitening, { mean: 0.25, scale: 2 });
    const [first, second, third] = part.tokens;
    assert.deepEqual([first.text, second.text], ["seven", undefined]);
    assert.deepEqual([first.sample, second.sample, third.sample], [0, 1, 1]);
    assert.deepEqual([first.position, third.position], [4, 6]);
    assert.deepEqual([first.share, second.share, third.share], [3 / 8, 0, 1 / 8]);
    assert.deepEqual([second.passes[0].cut, third.passes[0].ratio], ["clip_high", 0.5]);
    assert.deepEqual(third.parts, { episode: 0.125, turns: 0, kl: 0, taught: 0, mean: 0.75, scale: null });
    assert.deepEqual([third.oldLogprob, third.referenceLogprob, third.correction], [-3, null, null]);
  });

  test("each part has its share of what its own policy learnt", async () => {
    const parts = [RECORD, { ...RECORD, role: "black", policy: "rival" }];
    const pulls = gradients({ policy: "", pull: 8 }, { policy: "rival", pull: 16 });
    const { body } = await asked(TOKENS, ({ kind }) => (kind === "tokens" ? { records: parts } : pulls));
    assert.deepEqual(
      body.parts.map(({ role, policy, share }: Body) => [role, policy, share]),
      [
        [null, null, 0.5],
        ["black", "rival", 0.25],
      ],
    );
    const step = await asked("/runs/lake-1/steps/2/gradient", () => pulls);
    assert.deepEqual(step.body, {
      runId: "lake-1",
      step: 2,
      policies: [
        { policy: null, pull: 8, topTokens: [{ tokenId: 7, text: "seven" }] },
        { policy: "rival", pull: 16, topTokens: [{ tokenId: 7, text: "seven" }] },
      ],
    });
  });

  test("what is not recorded is an answer without parts for who asks for it so", async () => {
    const { status, body } = await asked(`${TOKENS}?orNone=1`, () => ({ absence: "nothing is recorded" }));
    assert.equal(status, 200);
    assert.deepEqual(body, { runId: "lake-1", slot: "train.2.0.1", step: null, parts: [] });
    const step = await asked("/runs/lake-1/steps/2/gradient?orNone=1", () => undefined);
    assert.deepEqual([step.status, step.body], [200, { runId: "lake-1", step: 2, policies: [] }]);
  });

  test("what is not recorded is answered 404 with the trainer's reason", async () => {
    const { status, body } = await asked(TOKENS, () => ({
      absence: "rollout train.2.0.1 was not trained by any step",
    }));
    assert.equal(status, 404);
    assert.match(body.error.message, /was not trained by any step/);
    const refused = await asked("/runs/lake-1/steps/3/gradient", () => ({ error: "the database is away" }));
    assert.deepEqual([refused.status, refused.body.error.message], [404, "the database is away"]);
  });

  test("without a trainer the answer is 503, and a wrong name is 400", async () => {
    assert.equal((await asked(TOKENS, () => undefined)).status, 503);
    assert.equal((await asked("/runs/lake-1/steps/3/gradient", () => undefined)).status, 503);
    assert.equal((await asked("/runs/lake-1/rollouts/elsewhere/tokens", () => undefined)).status, 400);
    assert.equal((await asked("/runs/lake.>/steps/3/gradient", () => undefined)).status, 400);
  });
});
