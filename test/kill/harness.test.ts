import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { temporaryFolder } from "@hone/testing";
import { REPOSITORY } from "../support/stack.ts";
import { complaintsAbout } from "./compare-outcomes.ts";
import { matrixTable } from "./matrix-table.ts";
import { MomentControl } from "./moment-control.ts";
import { MOMENTS } from "./moments.ts";
import { MUTATION_NAMES, MUTATIONS, mutate } from "./mutations.ts";
import type { RunOutcome } from "./run-outcome.ts";
import { MomentGate, newProgress } from "./seams/moment-gate.ts";
import { isNatsHello, natsPublishes } from "./seams/nats-commands.ts";
import { isPostgresHello, PostgresWrites } from "./seams/postgres-queries.ts";

/* Unit tests of the parts of the kill matrix. */

describe("the output of a NATS client", () => {
  const write = Buffer.from(
    "PING\r\nPUB a.b 2\r\nhi\r\nHPUB c.d reply 30 32\r\nNATS/1.0\r\nNats-Msg-Id: x/1\r\n\r\nyo\r\nSUB e 1\r\n",
  );

  test("is split into messages", () => {
    assert.deepEqual(
      [...natsPublishes(write)].map(({ begin, end, ...message }) => ({
        ...message,
        text: write.toString("latin1", begin, end).split("\r\n")[0],
      })),
      [
        { subject: "a.b", messageId: "", payload: "hi", text: "PUB a.b 2" },
        { subject: "c.d", messageId: "x/1", payload: "yo", text: "HPUB c.d reply 30 32" },
      ],
    );
  });

  test("is refused if a message is incomplete", () => {
    assert.throws(() => [...natsPublishes(write.subarray(0, 20))], /incomplete at byte 20/);
  });

  test("is recognised by its first command", () => {
    assert.ok(isNatsHello(Buffer.from('CONNECT {"verbose":false}\r\n')));
    assert.ok(!isNatsHello(Buffer.from("GET / HTTP/1.1\r\n")));
  });
});

describe("the output of a PostgreSQL client", () => {
  const message = (type: string, body: string) => {
    const head = Buffer.from(`${type}\0\0\0\0`);
    head.writeUInt32BE(4 + body.length, 1);
    return Buffer.concat([head, Buffer.from(body)]);
  };

  test("is split into queries, prepared ones included", () => {
    const writes = new PostgresWrites();
    const first = Buffer.concat([message("P", "s1\0commit\0"), message("D", "Ss1\0")]);
    const bound = Buffer.concat([message("B", "\0s1\0"), message("E", "\0\0\0\0\0"), message("S", "")]);
    const second = Buffer.concat([message("Q", "begin\0"), bound]);
    assert.deepEqual([...writes.queries(first)], []);
    const begin = second.length - bound.length;
    assert.deepEqual(
      [...writes.queries(second)],
      [
        { begin: 0, end: begin, text: "begin" },
        { begin, end: second.length, text: "commit" },
      ],
    );
  });

  test("is recognised by its first message", () => {
    assert.ok(isPostgresHello(Buffer.from([0, 0, 0, 9, 0, 3, 0, 0, 0])));
    assert.ok(!isPostgresHello(Buffer.from("CONNECT {}\r\n")));
  });
});

describe("the gate", () => {
  const path = [
    { pattern: "^a", times: 2 },
    { pattern: "^b", times: 1 },
  ];

  test("stops at the end of the path, counted over all threads, and only in the service of the moment", async () => {
    await using folder = await temporaryFolder("gate");
    const control = new MomentControl(folder.path);
    const progress = newProgress();
    const threads = [1, 2].map(() => new MomentGate(folder.path, "judge", progress));
    const other = new MomentGate(folder.path, "trainer", newProgress());
    assert.ok(!threads[0]!.isArmed());
    control.arm({ ...MOMENTS.accepted, service: "judge", path, stop: "after" });
    assert.deepEqual(
      [...threads, other].map((gate) => gate.isArmed()),
      [true, true, false],
    );
    assert.equal(threads[0]!.report("b"), undefined, "b counts only after a");
    assert.equal(threads[0]!.report("a"), undefined);
    assert.equal(threads[1]!.report("a"), undefined);
    assert.equal(threads[1]!.report("c"), undefined);
    assert.equal(threads[0]!.report("b"), "after");
    assert.equal(threads[1]!.report("b"), undefined, "a moment is reached only once");
  });

  test("lets only one process reach the moment, and reports which", async () => {
    await using folder = await temporaryFolder("gate");
    const control = new MomentControl(folder.path);
    control.arm({ ...MOMENTS.accepted, service: "judge", path });
    const gates = [1, 2].map(() => new MomentGate(folder.path, "judge", newProgress()));
    for (const gate of gates) assert.ok(gate.isArmed());
    control.release(); // so that meet() does not wait here
    gates[0]!.meet("first", true);
    gates[1]!.meet("second", true);
    const { pid } = process;
    assert.deepEqual(control.meeting(), { pid, service: "judge", what: "first", isOut: true });
    control.disarm();
    assert.ok(!gates[0]!.isArmed());
  });
});

describe("complaintsAbout()", () => {
  const rollout = {
    version: 1,
    outcome: "completed",
    reward: 1,
    advantage: 0.5,
    sample_count: 2,
    sampled_tokens: 8,
  };
  const good: RunOutcome = {
    stage: "completed",
    version: 1,
    rollouts: [
      { ...rollout, slot: "train.1.0.0" },
      { ...rollout, slot: "train.1.0.1" },
    ],
    chain: [
      { version: 0, state_digest: "a" },
      { version: 1, state_digest: "b" },
    ],
    evaluations: [{ version: 0, mode: "greedy", episodes: 10, metrics: { success: 0.5 } }],
    state: { "model.safetensors": "b", "optimizer.safetensors": "c" },
    checkpoint: { "model.safetensors": "b" },
    published: { isCompleted: true, version: 1, digest: "b" },
    events: ["accepted", "ended", "step 1"],
  };
  const first = good.rollouts[0]!;
  const faults: readonly (readonly [string, Partial<RunOutcome>, RegExp])[] = [
    ["that failed", { stage: "failed" }, /its stage is failed/],
    ["that lost a rollout", { rollouts: [first] }, /1 rollouts were not trained: train.1.0.1/],
    [
      "that trained one twice",
      { rollouts: [...good.rollouts, first] },
      /1 rollouts were trained twice: train.1.0.0/,
    ],
    [
      "that trained a foreign one",
      { rollouts: [...good.rollouts, { ...first, slot: "train.9.0.0" }] },
      /without being requested: train.9.0.0/,
    ],
    [
      "that trained one with another reward",
      { rollouts: [{ ...first, reward: 0 }, ...good.rollouts.slice(1)] },
      /other outcomes, rewards, advantages or tokens: train.1.0.0/,
    ],
    ["with a gap", { chain: good.chain.slice(1) }, /the chain of versions is 1$/],
    [
      "with other weights",
      { chain: [{ version: 0, state_digest: "z" }, ...good.chain.slice(1)] },
      /the weights of version 0 differ/,
    ],
    [
      "with another optimizer",
      { state: { ...good.state, "optimizer.safetensors": "z" } },
      /files of the last state differ: optimizer/,
    ],
    ["evaluated twice", { evaluations: [...good.evaluations, ...good.evaluations] }, /the evaluations are/],
    ["that published another version", { published: { ...good.published, version: 0 } }, /RUN_STATE shows/],
    ["that published an event twice", { events: [...good.events, "step 1"] }, /its events are/],
  ];

  test("has no complaint about a run that equals the undisturbed one", () => {
    assert.deepEqual(complaintsAbout(structuredClone(good), good), []);
  });

  for (const [name, change, complaint] of faults) {
    test(`complains about a run ${name}`, () => {
      assert.match(complaintsAbout({ ...good, ...change }, good).join("\n"), complaint);
    });
  }
});

for (const name of MUTATION_NAMES) {
  test(`the fault can be inserted: ${name}`, () => {
    const mutation = MUTATIONS[name];
    const source = readFileSync(path.join(REPOSITORY, mutation.file), "utf8");
    assert.ok(mutate(mutation, source).includes(mutation.replacement));
  });
}

test("docs/reliability.md shows the current matrix", () => {
  const text = readFileSync(path.join(REPOSITORY, "docs", "reliability.md"), "utf8");
  assert.ok(text.includes(matrixTable()), `the table must be\n${matrixTable()}`);
});
