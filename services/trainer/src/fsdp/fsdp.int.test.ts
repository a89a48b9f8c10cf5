/**
 * Runs on PyTorch workers with real servers. If a rank gets SIGKILL during a step, or a process of another node does, no rollout is
 * lost and none is trained on twice.
 * The tests are skipped where PyTorch is not installed (libs/testing/src/torch-python.ts).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadModel } from "@hone/checkpoint";
import { RunPhase } from "@hone/proto-gen/run";
import { eventually, torchPython } from "@hone/testing";
import { areGone, NodeProgram, ON_THIS_MACHINE, workersBelow } from "../testing/torch-host.ts";
import { runFile, startTrainer } from "../testing/trainer-process.ts";
import { startTrainerWorld } from "../testing/trainer-world.ts";
import { freePort } from "./free-port.ts";

const { python, skip } = torchPython(process.env);
const DEADLINE_MS = 1_800_000;
const STEPS = 3;

test(
  "a run whose worker is killed in mid-step trains what an undisturbed run trains",
  {
    skip,
    timeout: 2 * DEADLINE_MS,
  },
  () =>
    killInMidStep({}, async (step) => process.kill((await workersBelow(process.pid))[step - 1]!, "SIGKILL")),
);

test("a run over two nodes trains the same when the other node loses a rank, and then its program", {
  skip,
  timeout: 2 * DEADLINE_MS,
}, async () => {
  const { PATH, HOME, LD_LIBRARY_PATH } = process.env;
  const environment = { PATH, HOME, LD_LIBRARY_PATH };
  const port = await freePort();
  const settings = { HONE_TRAINER_NODES: "2", HONE_TRAINER_NODES_PORT: String(port), ...ON_THIS_MACHINE };
  let program = NodeProgram.start({ python, environment }, port);
  try {
    await killInMidStep(settings, async (step) => {
      const [rank, ...others] = await workersBelow(program.pid);
      assert.deepEqual(others, []);
      if (step === 1) {
        process.kill(rank!, "SIGKILL");
      } else {
        await program.end("SIGKILL");
        program = NodeProgram.start({ python, environment }, port);
      }
    });
  } finally {
    await program.end();
  }
});

/** Starts the programs of the nodes other than the trainer's own. */
function startNodes(count: number, port: number): NodeProgram[] {
  const { PATH, HOME, LD_LIBRARY_PATH } = process.env;
  const environment = { PATH, HOME, LD_LIBRARY_PATH };
  return Array.from({ length: count - 1 }, (_, i) =>
    NodeProgram.start({ python, environment }, port, 0, i + 1),
  );
}

test("a run continues on more nodes by replaying its steps on them", {
  skip,
  timeout: 2 * DEADLINE_MS,
}, async () => {
  await using world = await startTrainerWorld();
  const { sql, peers, events, servers } = world;
  // Only version 0 is saved with the optimizer, so each restart replays every step.
  const text = await runFile({
    trainer: {
      engine: { kind: "fsdp2", microbatchTokens: 64 },
      steps: STEPS,
      stateEvery: STEPS + 1,
      minibatches: 4,
      optimizer: { kind: "adamw", learningRate: 0.01 },
    },
  });
  const runId = await world.submit(text);
  const left: { version: number; digest: string }[] = [];
  for (const [i, nodes] of [1, 2, 4].entries()) {
    const port = await freePort();
    const programs = startNodes(nodes, port);
    const trainer = await startTrainer(servers, {
      HONE_TRAINER_PYTHON: python,
      HONE_TRAINER_TORCH_DEVICE: "cpu",
      HONE_TRAINER_NODES: String(nodes),
      HONE_TRAINER_NODES_PORT: String(port),
      PATH: process.env.PATH ?? "",
      HOME: process.env.HOME ?? "",
      ...ON_THIS_MACHINE,
    });
    try {
      await eventually(
        `step ${i + 1} on ${nodes} nodes`,
        () => events.of("stepCompleted", runId).some(({ step }) => step === i + 1) || undefined,
        { deadlineMs: DEADLINE_MS },
      );
      if (i === STEPS - 1) {
        const end = await world.endOf(runId, DEADLINE_MS);
        assert.equal(end.phase, RunPhase.COMPLETED, end.reason);
      }
    } finally {
      await trainer.stop();
      for (const program of programs) await program.end();
    }
    const before = left.at(-1);
    const [row] =
      await sql`select version, state_digest, recovery_version, arithmetic from trainer.runs where run_id = ${runId}`;
    // Commits of this run save no optimizer: only a replay does, at the version that it computed again. The weights of that version may
    // have other last bits than before, as more workers add numbers in another order; in so small a model they need not.
    if (before !== undefined) assert.equal(row?.recovery_version, before.version);
    assert.match(String(row?.arithmetic), new RegExp(`on ${nodes} cpu workers$`));
    left.push({ version: Number(row?.version), digest: String(row?.state_digest) });
  }
  const exported = await loadModel(`${servers.stateDir}/runs/${runId}/checkpoints/step-${STEPS}`);
  assert.equal(exported.digest, left.at(-1)?.digest);
  const trained = await sql`select slot from trainer.ledger where run_id = ${runId}`;
  assert.equal(trained.length, STEPS * 16);
  assert.equal(new Set(peers.executed).size, peers.executed.length, "a rollout was made again");
});

/**
 * Makes two runs of the same run file and disturbs the second one in two of its steps.
 * @param settings additional settings of the trainer.
 * @param kill kills one of the trainer's workers during the given step.
 */
async function killInMidStep(
  settings: Readonly<Record<string, string>>,
  kill: (step: number) => Promise<unknown>,
): Promise<void> {
  await using world = await startTrainerWorld();
  const { sql, peers, events, servers } = world;
  const trainer = await startTrainer(servers, {
    HONE_TRAINER_PYTHON: python,
    HONE_TRAINER_TORCH_DEVICE: "cpu",
    PATH: process.env.PATH ?? "",
    HOME: process.env.HOME ?? "",
    ...settings,
  });
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
      return world.submit(text);
    };
    const endOf = (runId: string) => world.endOf(runId, DEADLINE_MS);
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
    const exported = await loadModel(`${servers.stateDir}/runs/${calm}/checkpoints/step-${STEPS}`);
    assert.equal(exported.digest, expected.digest);

    const runId = await submit();
    const isTraining = (step: number) => () =>
      events.of("phaseChanged", runId).some((event) => event.phase === RunPhase.TRAIN && event.step === step);
    for (const step of [1, 2]) {
      await eventually(`the training of step ${step}`, isTraining(step), { deadlineMs: DEADLINE_MS });
      const ranks = await workersBelow(process.pid);
      assert.equal(ranks.length, 2);
      await kill(step);
      await eventually("the end of the group", () => areGone(ranks), { deadlineMs: DEADLINE_MS });
    }
    assert.equal((await endOf(runId)).phase, RunPhase.COMPLETED);
    assert.deepEqual(await outcomeOf(runId), expected);
    const twice = peers.executed.filter((slot, i) => peers.executed.indexOf(slot) !== i);
    // Both runs have the same slots, so each slot is executed twice in all, once for each run.
    assert.equal(twice.length, peers.executed.length / 2, "a rollout was made again");
    await eventually("the end of every worker", async () => (await workersBelow(process.pid)).length === 0, {
      deadlineMs: DEADLINE_MS,
    });
  } finally {
    await trainer.stop();
  }
}
