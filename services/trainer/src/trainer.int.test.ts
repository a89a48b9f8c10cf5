import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  BucketName,
  openBucket,
  publishBytes,
  RunControl,
  request,
  StreamName,
  subjects,
} from "@hone/messaging";
import {
  ControlReplySchema,
  ControlRequestSchema,
  ProblemSchema,
  RunPhase,
  RunStateSchema,
} from "@hone/proto-gen/run";
import type { RunningService } from "@hone/service-kit";
import { eventually } from "@hone/testing";
import { startValidator } from "./testing/fake-peers.ts";
import { runFile, startTrainer } from "./testing/trainer-process.ts";
import { startTrainerWorld, type TrainerWorld } from "./testing/trainer-world.ts";

const RUN_DEADLINE_MS = 60_000;

describe("trainer", { timeout: 240_000 }, () => {
  let world: TrainerWorld;
  let trainer: RunningService;

  before(async () => {
    world = await startTrainerWorld();
    trainer = await startTrainer(world.servers);
  });
  after(async () => {
    await trainer?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  async function publishRun(text: string): Promise<number> {
    return (await publishBytes(world.bus, subjects.runRequest(), text, undefined)).sequence;
  }

  function control(verb: RunControl, runId: string) {
    return request(
      world.bus,
      subjects.runControl(verb, runId),
      ControlRequestSchema,
      create(ControlRequestSchema, { runId }),
      ControlReplySchema,
      { timeoutMs: 5_000 },
    );
  }

  test("a run leads from its request to a checkpoint and trains on each rollout once", async () => {
    const runId = `small-${await publishRun(await runFile())}`;
    const end = await world.endOf(runId);
    assert.equal(end.phase, RunPhase.COMPLETED);
    assert.equal(end.checkpoint, `runs/${runId}/checkpoints/step-3`);
    assert.deepEqual(
      world.events.of("stepCompleted", runId).map(({ step, version }) => [step, version]),
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    );
    const { metrics } = world.events.of("stepCompleted", runId)[0]!;
    assert.equal(metrics.episodes, 16);
    assert.equal(metrics["outcome/completed"], 16);
    assert.equal(metrics.updates, 4);
    for (const name of ["reward/mean", "loss", "grad_norm", "entropy", "mismatch/max", "time/train_ms"]) {
      assert.ok(Number.isFinite(metrics[name]), name);
    }
    const rows = await world.sql`select slot from trainer.ledger where run_id = ${runId}`;
    assert.equal(rows.length, 48);
    assert.deepEqual((await readdir(`${world.servers.stateDir}/runs/${runId}/state`)).sort(), ["2-1", "3-1"]);
    const names = await readdir(`${world.servers.stateDir}/${end.checkpoint}`);
    for (const name of ["config.json", "model.safetensors", "tokenizer.json"])
      assert.ok(names.includes(name), name);
    const { state } = await control(RunControl.status, runId);
    assert.deepEqual([state?.phase, state?.version, state?.waitingFor], [RunPhase.COMPLETED, 3, ""]);
    assert.equal(state?.location, `runs/${runId}/state/3-1`);
  });

  test("two runs of the same file end with the same weights, and another seed gives other weights", async () => {
    const text = await runFile({
      name: "twin-a",
      warmStart: { kind: "sft", policy: "random_legal", tasks: 6, epochs: 2, batchSize: 4 },
    });
    const named = (name: string) => text.replace('"name":"twin-a"', `"name":"${name}"`);
    const first = `twin-a-${await publishRun(text)}`;
    const second = `twin-b-${await publishRun(named("twin-b"))}`;
    const other = `twin-c-${await publishRun(named("twin-c").replace('"seed":11', '"seed":12'))}`;
    await Promise.all([first, second, other].map((runId) => world.endOf(runId)));
    const digests = await Promise.all(
      [first, second, other].map(
        async (runId) =>
          (await world.sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest,
      ),
    );
    assert.equal(digests[0], digests[1]);
    assert.notEqual(digests[0], digests[2]);
    const warm =
      await world.sql`select count(*)::int as n from trainer.ledger where run_id = ${first} and version = 0`;
    assert.equal(warm[0]?.n, 6);
  });

  test("a run whose jobs do not fit into JOBS says so while it waits, and then gets every rollout", async () => {
    const { config } = await world.bus.manager.streams.info(StreamName.jobs);
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = (job) => (job.runId.startsWith("crowded") ? hold.promise : Promise.resolve());
    await world.bus.manager.streams.update(StreamName.jobs, { ...config, max_msgs_per_subject: 3 });
    try {
      const runId = `crowded-${await publishRun(await runFile({ name: "crowded" }))}`;
      await eventually(
        "the status to name the full stream",
        async () => {
          const { state } = await control(RunControl.status, runId);
          return /jobs are not published yet .*the stream is at its limit/.test(state?.waitingFor ?? "");
        },
        { deadlineMs: RUN_DEADLINE_MS },
      );
      hold.resolve();
      assert.equal((await world.endOf(runId)).phase, RunPhase.COMPLETED);
      assert.equal((await world.sql`select slot from trainer.ledger where run_id = ${runId}`).length, 48);
    } finally {
      hold.resolve();
      world.peers.beforeEpisode = async () => undefined;
      await world.bus.manager.streams.update(StreamName.jobs, {
        ...config,
        max_msgs_per_subject: config.max_msgs_per_subject,
      });
    }
  });

  test("evaluates before the first step, in between and after the last step on the whole split, sampled and greedy", async () => {
    const text = await runFile({
      name: "judged",
      dataset: {
        train: { source: "environment", environment: "fake", seeds: { from: 0, to: 6 } },
        eval: { source: "environment", environment: "fake", seeds: { from: 0, to: 6 } },
      },
      trainer: {
        steps: 3,
        minibatches: 2,
        optimizer: { kind: "adamw", learningRate: 0.01 },
        eval: { every: 2, tasks: 2 },
      },
    });
    const runId = `judged-${await publishRun(text)}`;
    await world.endOf(runId);
    assert.deepEqual(
      world.events.of("evaluated", runId).map(({ version, mode, episodes }) => [version, mode, episodes]),
      [0, 2, 3].flatMap((version) =>
        ["sampled", "greedy"].map((mode) => [version, mode, version === 3 ? 6 : 2]),
      ),
    );
  });

  test("a run file with an unknown key is refused with the probable key, and leaves nothing behind", async () => {
    const text = await runFile({ name: "wrong", tainer: {} });
    const sequence = await publishRun(text);
    const refused = await eventually("the refusal", () =>
      world.events.of("refused").find(({ requestSequence }) => Number(requestSequence) === sequence),
    );
    assert.equal(refused.problems[0]?.key, "tainer");
    assert.match(refused.problems[0]?.message ?? "", /did you mean `trainer`/);
    assert.equal(
      (await world.sql`select 1 from trainer.runs where request_sequence = ${sequence}`).length,
      0,
    );
  });

  test("a run is refused while another run of the same name is active, and the refusal names that run", async () => {
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = (job) => (job.runId.startsWith("busy") ? hold.promise : Promise.resolve());
    const text = await runFile({ name: "busy" });
    const first = `busy-${await publishRun(text)}`;
    // Several requests are handled at once, so either of two that arrive together may be accepted.
    await eventually("the first to be accepted", () => world.events.of("accepted", first)[0]);
    const second = await publishRun(text);
    const refused = await eventually("the refusal", () =>
      world.events.of("refused").find(({ requestSequence }) => Number(requestSequence) === second),
    );
    assert.equal(refused.problems[0]?.key, "name");
    assert.match(refused.problems[0]?.message ?? "", new RegExp(`hone\\.v1\\.run\\.cancel\\.${first}`));
    hold.resolve();
    assert.equal((await world.endOf(first)).phase, RunPhase.COMPLETED);
    const third = `busy-${await publishRun(text)}`;
    assert.equal((await world.endOf(third)).phase, RunPhase.COMPLETED);
    world.peers.beforeEpisode = async () => undefined;
  });

  test("a run whose training cannot fit into memory is refused with the numbers", async () => {
    const optimizer = { kind: "adamw", learningRate: 0.01 };
    const engine = { kind: "onnx", microbatchTokens: 1_000_000 };
    const sequence = await publishRun(
      await runFile({ name: "large", trainer: { steps: 1, engine, optimizer } }),
    );
    const refused = await eventually("the refusal", () =>
      world.events.of("refused").find(({ requestSequence }) => Number(requestSequence) === sequence),
    );
    assert.equal(refused.problems[0]?.key, "trainer.engine.microbatchTokens");
    assert.match(
      refused.problems[0]?.message ?? "",
      /fits into 1024 MiB \(HONE_TRAINER_MEMORY_MIB\); predicted are \d+ MiB/,
    );
  });

  test("text that is not a run file is refused", async () => {
    const sequence = await publishRun("\n\tno: [yaml");
    await eventually("the refusal", () =>
      world.events.of("refused").find(({ requestSequence }) => Number(requestSequence) === sequence),
    );
  });

  test("a run that a service refuses is refused with that problem and leaves nothing behind", async () => {
    const problem = create(ProblemSchema, { key: "agent.name", valueJson: '"fake"', allowed: "frozen_lake" });
    world.peers.problems.set("agent-rollout", [problem]);
    try {
      const sequence = await publishRun(await runFile({ name: "unwanted" }));
      const refused = await eventually("the refusal", () =>
        world.events.of("refused").find(({ requestSequence }) => Number(requestSequence) === sequence),
      );
      assert.equal(refused.problems[0]?.key, "agent.name");
      const runId = `unwanted-${sequence}`;
      await eventually("the row to be gone", async () => {
        return (await world.sql`select 1 from trainer.runs where run_id = ${runId}`).length === 0;
      });
      assert.ok(!(await readdir(`${world.servers.stateDir}/runs`)).includes(runId));
      const bucket = await openBucket(world.bus, BucketName.runState, RunStateSchema);
      assert.equal(await bucket.get(runId), undefined);
      assert.match((await control(RunControl.status, runId)).error, /there is no run "/);
    } finally {
      world.peers.problems.clear();
    }
  });

  test("a cancelled run ends, its jobs are removed, and its state says so", async () => {
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = (job) => (job.runId.startsWith("stopped") ? hold.promise : Promise.resolve());
    const runId = `stopped-${await publishRun(await runFile({ name: "stopped" }))}`;
    await eventually(
      "its first job",
      () => world.peers.executed.length > 0 && world.events.of("accepted", runId)[0],
    );
    await eventually("what it waits for", async () =>
      (await control(RunControl.status, runId)).state?.waitingFor.includes("16 of 16 rollouts of step 1"),
    );
    assert.equal((await control(RunControl.cancel, runId)).error, "");
    const end = await world.endOf(runId);
    hold.resolve();
    assert.equal(end.phase, RunPhase.CANCELLED);
    const { state } = await control(RunControl.status, runId);
    assert.equal(state?.phase, RunPhase.CANCELLED);
    assert.match(
      (await control(RunControl.pause, runId)).error,
      /is over \(cancelled\), and only an unfinished run can be asked to pause/,
    );
    world.peers.beforeEpisode = async () => undefined;
  });

  test("a paused run starts no further step until it is resumed", async () => {
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = (job) => (job.slot?.step === 2 ? hold.promise : Promise.resolve());
    const runId = `paused-${await publishRun(await runFile({ name: "paused" }))}`;
    await eventually("its second step", () => world.events.of("stepCompleted", runId)[0]);
    await control(RunControl.pause, runId);
    hold.resolve();
    await eventually(
      "the pause",
      async () => (await control(RunControl.status, runId)).state?.phase === RunPhase.PAUSED,
    );
    assert.equal(world.events.of("stepCompleted", runId).length, 2);
    await control(RunControl.resume, runId);
    assert.equal((await world.endOf(runId)).phase, RunPhase.COMPLETED);
    world.peers.beforeEpisode = async () => undefined;
  });

  test("the run of a stopped trainer continues in the next one and trains the same as an undisturbed run", async () => {
    const undisturbed = `calm-${await publishRun(await runFile({ name: "calm" }))}`;
    await world.endOf(undisturbed);
    const hold = Promise.withResolvers<void>();
    world.peers.beforeEpisode = (job) =>
      job.runId.startsWith("moved") && job.slot?.step === 2 && job.slot.task > 1
        ? hold.promise
        : Promise.resolve();
    const runId = `moved-${await publishRun(await runFile({ name: "moved" }))}`;
    await eventually(
      "half of its second step",
      () =>
        world.peers.executed.length > 0 &&
        world.events.of("stepProgress", runId).some(({ step }) => step === 2),
    );
    await trainer.stop();
    hold.resolve();
    trainer = await startTrainer(world.servers);
    assert.equal((await world.endOf(runId)).phase, RunPhase.COMPLETED);
    world.peers.beforeEpisode = async () => undefined;
    const slots = async (run: string) =>
      (await world.sql`select slot from trainer.ledger where run_id = ${run} order by slot`).map(
        ({ slot }) => slot,
      );
    assert.deepEqual(await slots(runId), await slots(undisturbed));
    const digest = async (run: string) =>
      (await world.sql`select state_digest from trainer.runs where run_id = ${run}`)[0]?.state_digest;
    assert.equal(await digest(runId), await digest(undisturbed));
  });

  test("a run whose row is unreadable fails and says why, and other runs continue", async () => {
    const broken = "broken-999999";
    await world.sql`insert into trainer.runs (run_id, request_sequence, name, stage, config_json)
      values (${broken}, 999999, 'broken', 'active', 'rubbish')`;
    const sound = `sound-${await publishRun(await runFile({ name: "sound" }))}`;
    const { phase, reason } = await world.endOf(broken);
    assert.equal(phase, RunPhase.FAILED);
    assert.match(reason, /the database's row of run broken-999999 is broken: config_json must be a run file/);
    assert.equal((await world.endOf(sound)).phase, RunPhase.COMPLETED);
    const [row] = await world.sql`select stage, end_reason from trainer.runs where run_id = ${broken}`;
    assert.deepEqual(row, { stage: "failed", end_reason: reason });
    assert.equal((await control(RunControl.status, broken)).error.includes("config_json"), true);
  });
});

describe("admission", { timeout: 60_000 }, () => {
  test("a run waits for a service that does not answer, says so, and continues when it does", async () => {
    await using world = await startTrainerWorld({ silent: ["judge"] });
    const { bus, peers, events } = world;
    const trainer = await startTrainer(world.servers);
    try {
      const runId = await world.submit(await runFile());
      const bucket = await openBucket(bus, BucketName.runState, RunStateSchema);
      const state = await eventually("the state to name what it waits for", async () => {
        const entry = await bucket.get(runId);
        return entry?.value.waitingFor.includes("judge") ? entry.value : undefined;
      });
      assert.equal(state.phase, RunPhase.WAITING);
      assert.ok(state.waitingSinceMs > 0n);
      assert.equal(events.of("accepted").length, 0);
      startValidator(bus, "judge", peers);
      await world.endOf(runId);
    } finally {
      await trainer.stop();
    }
  });
});
