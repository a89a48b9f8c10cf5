import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { findCauseOfWait, type MissingRollouts, type PipelineView } from "./find-cause-of-wait.ts";

const WANTED: MissingRollouts = {
  what: "step 3",
  missing: 5,
  total: 16,
  version: 2,
  unpublished: 0,
  runId: "run-1",
  neededFrom: 40,
  keepsSteps: false,
  open: [],
};
const ROOM = { bytes: 10, maxBytes: 100, isFull: false, firstSequence: 40, runs: ["run-1"] };
const FULL = { ...ROOM, bytes: 98, isFull: true };
const CALM: Extract<PipelineView, { kind: "seen" }> = {
  kind: "seen",
  silent: [],
  jobs: 5,
  jobsPending: 0,
  jobsInWork: 5,
  unscored: 0,
  episodes: ROOM,
  replicas: [{ name: "r", versions: [1, 2], activity: "" }],
  open: [],
};
const OPEN = [
  { slot: "train.3.0.1", sinceMs: Date.UTC(2026, 0, 2, 10, 30) },
  { slot: "train.3.0.0", sinceMs: Date.UTC(2026, 0, 2, 9, 5) },
];

const cases: readonly [string, Partial<typeof CALM>, Partial<MissingRollouts>, string, RegExp][] = [
  ["rollouts are being made", {}, {}, "agent-rollout", /works on 5$/],
  ["jobs are not taken", { jobsPending: 3, jobsInWork: 2 }, {}, "agent-rollout", /has not taken 3$/],
  ["agent-rollout is silent", { silent: ["agent-rollout"] }, {}, "agent-rollout", /does not answer/],
  ["the gateway is silent", { silent: ["inference-gateway"] }, {}, "inference-gateway", /does not answer/],
  [
    "the gateway is silent but a script acts",
    { silent: ["inference-gateway"], replicas: [] },
    { version: undefined },
    "agent-rollout",
    /works on 5$/,
  ],
  ["no replica is known", { replicas: [] }, {}, "inference-gateway", /no replica .* version 2$/],
  [
    "the replica is behind",
    { replicas: [{ name: "r", versions: [1], activity: "loading version 2" }] },
    {},
    "inference-gateway",
    /r has 1 and is loading version 2$/,
  ],
  ["episodes are not scored", { jobs: 0, jobsInWork: 0, unscored: 4 }, {}, "judge", /not scored 4 episodes/],
  ["the judge is silent", { unscored: 4, silent: ["judge"] }, {}, "judge", /judge does not answer/],
  [
    "two are silent",
    { unscored: 4, silent: ["judge", "inference-gateway"] },
    {},
    "inference-gateway",
    /inference-gateway, judge do not answer/,
  ],
  [
    "a silent service has nothing to do with it",
    { silent: ["tracer", "dataset", "judge"] },
    {},
    "agent-rollout",
    /works on 5$/,
  ],
  [
    "its jobs are held back",
    { jobs: 0, jobsPending: 2_000, jobsInWork: 512 },
    { unpublished: 5 },
    "agent-rollout",
    /works on 512 and has not taken 2000$/,
  ],
  [
    "episodes of this step alone do not fit",
    { episodes: FULL },
    {},
    "you",
    /EPISODES is full \(it holds 98 bytes of at most 100\).* start the trainer with HONE_EPISODES_MAX_BYTES above 100,/,
  ],
  [
    "episodes wait for steps to be dropped",
    { episodes: FULL },
    { keepsSteps: true },
    "bus",
    /EPISODES is full/,
  ],
  [
    "episodes wait for readers",
    { episodes: { ...FULL, firstSequence: 39 } },
    {},
    "bus",
    /hold what they have/,
  ],
  [
    "other runs fill the stream",
    { episodes: { ...FULL, runs: ["run-1", "other-2"] } },
    {},
    "bus",
    /of 2 runs/,
  ],
  [
    "rollouts have ended and wait for rewards",
    { jobs: 0, jobsInWork: 0 },
    { open: OPEN },
    "you",
    /: 2 wait for rewards, the oldest since 2026-01-02 09:05 UTC$/,
  ],
  [
    "some wait for rewards while others are made",
    {},
    { open: OPEN.slice(0, 1) },
    "agent-rollout",
    /works on 5; 1 waits for rewards, the oldest since 2026-01-02 10:30 UTC$/,
  ],
  ["nothing is left", { jobs: 0, jobsInWork: 0 }, {}, "trainer", /publishes again/],
];

describe("findCauseOfWait()", () => {
  for (const [name, view, wanted, owner, text] of cases) {
    test(`names ${owner} when ${name}`, () => {
      const found = findCauseOfWait({ ...WANTED, ...wanted }, { ...CALM, ...view });
      assert.equal(found.owner, owner);
      assert.match(found.text, text);
      assert.match(found.text, /^5 of 16 rollouts of step 3/);
    });
  }

  test("names the bus when it does not answer", () => {
    assert.equal(findCauseOfWait(WANTED, { kind: "bus_silent" }).owner, "bus");
  });
});
