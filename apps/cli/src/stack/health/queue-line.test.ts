import assert from "node:assert/strict";
import { test } from "node:test";
import { queueLine } from "./queue-line.ts";

const NONE = { pending: 0, inWork: 0 };

test("queueLine() tells what waits for whom, and says nothing of empty queues", () => {
  assert.equal(
    queueLine({ pending: 12, inWork: 24 }, { pending: 3, inWork: 1 }),
    "queues: 12 jobs wait for agent-rollout, which works on 24; 3 episodes wait for the judge, which works on 1",
  );
  assert.equal(
    queueLine({ pending: 0, inWork: 2 }, NONE),
    "queues: 0 jobs wait for agent-rollout, which works on 2; 0 episodes wait for the judge, which works on 0",
  );
  assert.equal(queueLine(NONE, NONE), undefined);
});
