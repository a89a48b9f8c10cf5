/**
 * A run on PyTorch workers, on real servers: SIGKILL of a rank in the middle of a step loses nothing and trains nothing twice.
 * Skipped where there is no PyTorch (libs/testing/src/torch-python.ts).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectBus, ensureTopology, publishBytes, subjects } from "@hone/messaging";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually, startNats, startPostgres, temporaryFolder, torchPython } from "@hone/testing";
import { loadModel } from "@hone/train";
import postgres from "postgres";
import { startFakePeers } from "../testing/fake-peers.ts";
import { workersBelow } from "../testing/torch-host.ts";
import { followEvents, runFile, startTrainer } from "../testing/trainer-process.ts";

const { python, skip } = torchPython(process.env);
const DEADLINE_MS = 1_800_000;
const STEPS = 3;

test("a run whose worker is killed in mid-step trains what an undisturbed run trains", {
  skip,
  timeout: 2 * DEADLINE_MS,
}, async () => {
  await using nats = await startNats();
  await using database = await startPostgres();
  await using folder = await temporaryFolder("fsdp");
  const bus = await connectBus({ url: nats.url, name: "test" });
  await ensureTopology(bus);
  const peers = startFakePeers(bus);
  const ended = new AbortController();
  const events = followEvents(bus, ended.signal);
  const sql = postgres(database.url, { onnotice: () => undefined });
  const trainer = await startTrainer(
    { nats: nats.url, postgres: database.url, stateDir: folder.path },
    {
      HONE_TRAINER_PYTHON: python,
      HONE_TRAINER_TORCH_DEVICE: "cpu",
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
    },
  );
  try {
    const submit = async () => {
      const text = await runFile({
        trainer: {
          engine: { kind: "fsdp2", worldSize: 2, microbatchTokens: 64 },
          steps: STEPS,
          epochs: 2,
          minibatches: 4,
          optimizer: { kind: "adamw", learningRate: 0.01 },
        },
      });
      return `small-${(await publishBytes(bus, subjects.runRequest(), text, undefined)).sequence}`;
    };
    const endOf = (runId: string) =>
      eventually(`the end of ${runId}`, () => events.of("ended", runId)[0], { deadlineMs: DEADLINE_MS });
    const outcomeOf = async (runId: string) => ({
      digest: (await sql`select state_digest from trainer.runs where run_id = ${runId}`)[0]?.state_digest,
      ledger: (
        await sql`select slot, version, reward from trainer.ledger where run_id = ${runId} order by slot`
      ).map(({ slot, version, reward }) => [slot, version, reward]),
      steps: events.of("stepCompleted", runId).map(({ step }) => step),
    });

    const calm = await submit();
    assert.equal((await endOf(calm)).phase, RunPhase.COMPLETED);
    const expected = await outcomeOf(calm);
    assert.equal(expected.ledger.length, STEPS * 16);
    const exported = await loadModel(`${folder.path}/runs/${calm}/checkpoints/step-${STEPS}`);
    assert.equal(exported.digest, expected.digest);

    const runId = await submit();
    const isTraining = (step: number) => () =>
      events.of("phaseChanged", runId).some((event) => event.phase === RunPhase.TRAIN && event.step === step);
    for (const step of [1, 2]) {
      await eventually(`the training of step ${step}`, isTraining(step), { deadlineMs: DEADLINE_MS });
      const ranks = await workersBelow(process.pid);
      assert.equal(ranks.length, 2);
      process.kill(ranks[step - 1]!, "SIGKILL");
      await eventually(
        "the end of the group",
        async () => !(await workersBelow(process.pid)).includes(ranks[0]!),
        {
          deadlineMs: DEADLINE_MS,
        },
      );
    }
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    assert.deepEqual(await outcomeOf(runId), expected);
    const twice = peers.executed.filter((slot, i) => peers.executed.indexOf(slot) !== i);
    // Both runs have the same slots, so each slot comes twice in all: once per run.
    assert.equal(twice.length, peers.executed.length / 2, "a rollout was made again");
    await eventually("the end of every worker", async () => (await workersBelow(process.pid)).length === 0, {
      deadlineMs: DEADLINE_MS,
    });
  } finally {
    ended.abort();
    await trainer.stop();
    await peers.stop();
    await sql.end();
    await bus.close();
  }
});
