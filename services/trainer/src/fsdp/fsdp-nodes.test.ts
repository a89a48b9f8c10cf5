/**
 * Tests of workers on two nodes. The nodes are two processes of this machine that connect through 127.0.0.1. The workers compute
 * the same bits as equally many workers of one node. If any process of the other node is killed, the group ends, and a new
 * group continues from the last saved state with the same results as an undisturbed one.
 */
import assert from "node:assert/strict";
import path from "node:path";
import { describe, test } from "node:test";
import { silentLogger } from "@hone/telemetry";
import { eventually, temporaryFolder, torchPython } from "@hone/testing";
import type { TrainingEngine } from "../domain/step/training-engine.ts";
import { BATCHES, differentiate, updates, whole } from "../testing/fsdp-fixtures.ts";
import {
  areGone,
  EXACT,
  NodeProgram,
  ON_THIS_MACHINE,
  torchHost,
  workersBelow,
} from "../testing/torch-host.ts";
import { GroupLostError } from "./errors.ts";
import { TorchFinder } from "./find-torch.ts";
import { freePort } from "./free-port.ts";
import type { TorchHost } from "./fsdp-config.ts";
import { FsdpTrainingEngine } from "./fsdp-training-engine.ts";
import { TorchNodes } from "./torch-nodes.ts";

const { python, skip } = torchPython(process.env);
// On CPUs also where other tests use GPUs: NCCL refuses two ranks on one GPU, and both nodes are this machine.
const host = torchHost(python, { ...process.env, HONE_TEST_TORCH_DEVICE: "cpu" });
const TIMEOUT_MS = 3_600_000;
/** How long a group may take to notice that a rank was killed: seconds, on a machine that is busy with other work. */
const END_MS = 120_000;

/** Sets up two nodes; the test itself starts and ends the program of the other node. */
async function withNodes(
  use: (
    over: TorchHost,
    startProgram: (httpPort?: number) => NodeProgram,
    nodes: TorchNodes,
  ) => Promise<void>,
): Promise<void> {
  const others = await TorchNodes.listen({ count: 2, host: "127.0.0.1", port: 0, logger: silentLogger() });
  const programs: NodeProgram[] = [];
  const startProgram = (httpPort = 0) => {
    const program = NodeProgram.start(host, others.port, httpPort);
    programs.push(program);
    return program;
  };
  const environment = { ...host.environment, ...ON_THIS_MACHINE };
  try {
    const over = { ...host, torchVersion: await torchVersion(), environment, nodes: { others } };
    await use(over, startProgram, others);
  } finally {
    for (const program of programs) await program.end("SIGKILL");
    await others.close();
  }
}

const finder = new TorchFinder({ ...host, nodes: 2, nodesPort: 0 });
async function torchVersion(): Promise<string> {
  const found = await finder.find();
  assert.ok(found.kind === "found", JSON.stringify(found));
  return found.facts.version;
}

function engineOf(worldSize: number, over: TorchHost, startFolder: string): FsdpTrainingEngine {
  return new FsdpTrainingEngine({ ...whole, ...EXACT, worldSize, startFolder }, over);
}

/** Trains three ordinary updates. @returns the digest of the resulting weights. */
async function trainOn(engine: TrainingEngine, folder: string): Promise<string> {
  for (const step of updates(3)) await engine.trainMinibatch(step);
  return (await engine.saveWeights(folder)).digest;
}

describe("FSDP2 over two nodes", { skip, timeout: TIMEOUT_MS }, () => {
  test(
    "one and two workers on each compute what two and four of one node compute, bit for bit",
    {
      timeout: TIMEOUT_MS,
    },
    () =>
      withNodes(async (over, startProgram) => {
        await using folder = await temporaryFolder("nodes");
        const at = (name: string) => path.join(folder.path, name);
        startProgram();
        for (const worldSize of [2, 4]) {
          const found: unknown[] = [];
          for (const [name, place] of [
            ["one", host],
            ["two", over],
          ] as const) {
            const engine = engineOf(worldSize, place, at("start"));
            try {
              await engine.initialise();
              const gradients = [];
              for (const batch of Object.values(BATCHES)) {
                gradients.push(await differentiate(engine, whole, batch, at("scratch")));
              }
              const digest = await trainOn(engine, at("trained"));
              // Each node writes its shards of the optimizer; then a group of the other kind continues from them.
              const kept = at(`${name}-${worldSize}`);
              await engine.save(kept);
              await engine.load(name === "two" ? at(`one-${worldSize}`) : kept);
              await engine.trainMinibatch(updates(4)[3]!);
              const next = (await engine.saveWeights(at("next"))).digest;
              found.push({ gradients: gradients.map((each) => ({ ...each, elapsedMs: 0 })), digest, next });
            } finally {
              await engine.close();
            }
          }
          assert.deepEqual(found[1], found[0], `${worldSize} workers`);
        }
      }),
  );

  test(
    "when a rank of the other node or its program is killed, another group continues with the same results",
    {
      timeout: TIMEOUT_MS,
    },
    () =>
      withNodes(async (over, startProgram, nodes) => {
        await using folder = await temporaryFolder("nodes");
        const at = (name: string) => path.join(folder.path, name);
        let program = startProgram();
        const start = at("committed");
        const undisturbed = engineOf(2, over, at("start"));
        await undisturbed.initialise();
        await undisturbed.save(start);
        const expected = await trainOn(undisturbed, at("expected"));
        await undisturbed.close();

        for (const victim of [
          "rank",
          "program",
          "rank while nobody calls",
          "program, told to end",
        ] as const) {
          const engine = engineOf(2, over, at("start"));
          await engine.load(start);
          const ranks = await workersBelow(process.pid);
          const theirs = await workersBelow(program.pid);
          assert.deepEqual([ranks.length, theirs.length], [2, 1], victim);
          const isIdle = victim === "rank while nobody calls";
          const lost = isIdle ? undefined : trainUntilLost(engine);
          switch (victim) {
            case "rank":
            case "rank while nobody calls":
              process.kill(theirs[0]!, "SIGKILL");
              break;
            case "program":
              await program.end("SIGKILL");
              break;
            case "program, told to end":
              assert.equal(await program.end("SIGTERM"), 0, program.output);
              assert.ok(await areGone(theirs), "its ranks have not ended");
              break;
            default:
              assert.fail(victim satisfies never);
          }
          // The processes of both nodes end by themselves; nobody has closed the engine.
          await eventually(`the end of every rank (${victim})`, () => areGone(ranks), { deadlineMs: END_MS });
          const error = await (lost ?? assertLost(engine.trainMinibatch(updates(1)[0]!)));
          assert.ok(error instanceof GroupLostError, `${victim}: ${error}`);
          await engine.close();
          if (victim.startsWith("program")) {
            await eventually("the end of the node", () => nodes.missing.length === 1, { deadlineMs: END_MS });
            program = startProgram();
          }

          const next = engineOf(2, over, at("start"));
          await next.load(start);
          assert.equal(await trainOn(next, at("again")), expected, victim);
          await next.close();
        }
      }),
  );

  test(
    "a trainer that is gone ends the ranks of its nodes, and the nodes come again",
    { timeout: TIMEOUT_MS },
    () =>
      withNodes(async (over, startProgram, nodes) => {
        await using folder = await temporaryFolder("nodes");
        const httpPort = await freePort();
        const answerOf = async (route: string) =>
          (await fetch(`http://127.0.0.1:${httpPort}${route}`)).status;
        const program = startProgram(httpPort);
        const engine = engineOf(2, over, path.join(folder.path, "start"));
        await engine.initialise();
        const theirs = await workersBelow(program.pid);
        assert.equal(theirs.length, 1);
        assert.deepEqual([await answerOf("/livez"), await answerOf("/readyz")], [200, 200]);
        const { port } = nodes;
        await nodes.close();
        await eventually("the end of its ranks", () => areGone(theirs), { deadlineMs: END_MS });
        await eventually("a node that is not ready", async () => (await answerOf("/readyz")) === 503);
        assert.equal(await answerOf("/livez"), 200);
        await engine.close();
        const anew = await TorchNodes.listen({ count: 2, host: "127.0.0.1", port, logger: silentLogger() });
        try {
          const again = engineOf(
            2,
            { ...over, nodes: { ...over.nodes!, others: anew } },
            path.join(folder.path, "start"),
          );
          await again.initialise();
          await again.close();
        } finally {
          await anew.close();
        }
      }),
  );

  test("a node that does not connect in time is reported by its number", { timeout: TIMEOUT_MS }, () =>
    withNodes(async (over) => {
      await using folder = await temporaryFolder("nodes");
      const engine = engineOf(2, { ...over, startDeadlineMs: 500 }, path.join(folder.path, "start"));
      await assert.rejects(
        engine.initialise(),
        (error) =>
          error instanceof GroupLostError &&
          /node 1 of 2 .* did not connect within 500 ms/.test(error.message),
      );
      await engine.close();
    }),
  );
});

/** Trains until the group is lost. @returns the error. */
async function trainUntilLost(engine: TrainingEngine): Promise<unknown> {
  const deadline = performance.now() + END_MS;
  while (performance.now() < deadline) {
    try {
      await engine.trainMinibatch(updates(1)[0]!);
    } catch (error) {
      return error;
    }
  }
  return "nothing";
}

function assertLost(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "nothing",
    (error: unknown) => error,
  );
}
