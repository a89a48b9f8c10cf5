import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createLogger, silentLogger, startTelemetry, withSpan } from "@hone/telemetry";
import { eventually, startOtlpReceiver, temporaryFolder } from "@hone/testing";
import { EngineCallError, EngineLostError } from "../engine/errors.ts";
import { FakeNode } from "../testing/fake-node.ts";
import { GroupLostError } from "./errors.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { TorchHost } from "./fsdp-config.ts";
import { TorchGroup } from "./torch-group.ts";
import { TorchNodes } from "./torch-nodes.ts";

const FAKE = fileURLToPath(new URL("../testing/fake-workers.ts", import.meta.url));
const NEVER = new AbortController().signal;

/** Calls `use` with a function that starts a group whose Python interpreter is replaced by a shell script. */
async function withGroup(
  script: string,
  use: (start: (signal?: AbortSignal) => Promise<TorchGroup>, log: string[]) => Promise<void>,
  changes: Partial<TorchHost> = {},
  worldSize = 1,
): Promise<void> {
  await using folder = await temporaryFolder("group");
  const python = path.join(folder.path, "python");
  await writeFile(python, `#!/bin/sh\n${script}\n`);
  await chmod(python, 0o755);
  const log: string[] = [];
  const host: TorchHost = {
    python,
    device: "cpu",
    torchVersion: "2.13.0",
    threadsPerWorker: 1,
    environment: { PATH: process.env.PATH },
    startDeadlineMs: 60_000,
    callDeadlineMs: 60_000,
    logger: createLogger({ service: "trainer", sink: { write: (line) => log.push(line) } }),
    ...changes,
  };
  await use((signal = NEVER) => TorchGroup.start(host, worldSize, signal), log);
}

const SPEAKING = `exec '${process.execPath}' -e "import('${FAKE}').then((fake) => fake.speakAsWorkers(process))"`;
const asking = (wish: string) => ({ case: "load", value: { optimizerFolder: wish } }) as const;

describe("TorchGroup", () => {
  test("a call returns its answer or throws its refusal, and what workers print is logged", () =>
    withGroup(SPEAKING, async (start, log) => {
      const group = await start();
      try {
        assert.equal((await group.call(asking("answer"))).case, "done");
        await assert.rejects(group.call(asking("refuse")), (error) => {
          return error instanceof EngineCallError && error.code === "TRAINING_INPUT";
        });
        assert.equal((await group.call(asking("answer"))).case, "done");
        assert.ok(
          log.some((line) => line.includes("asked to refuse")),
          log.join(""),
        );
      } finally {
        await group.close();
      }
    }));

  test("the spans of each rank in a recorded call belong to the caller's trace", () =>
    withGroup(SPEAKING, async (start) => {
      await using receiver = await startOtlpReceiver();
      const telemetry = await startTelemetry({ serviceName: "trainer", tracerUrl: receiver.url });
      const group = await start();
      try {
        await group.call(asking("answer"));
        await withSpan("step.optimize", { parent: "root" }, () => group.call(asking("answer")));
      } finally {
        await group.close();
        await telemetry.shutdown();
      }
      const [caller] = receiver.spans.filter(({ name }) => name === "step.optimize");
      const loads = receiver.spans.filter(({ name }) => name === "worker.load");
      // Only one of the two calls was recorded: each rank has a span for the load, with a child span for the reading.
      assert.deepEqual(loads.map(({ attributes }) => attributes["hone.worker.rank"]).sort(), [0, 1]);
      for (const load of loads) {
        assert.equal(load.parentSpanId, caller?.spanId);
        const parts = receiver.spans.filter(({ parentSpanId }) => parentSpanId === load.spanId);
        assert.deepEqual(
          parts.map(({ name, attributes }) => [name, attributes["hone.worker.rank"]]),
          [["worker.read", load.attributes["hone.worker.rank"]]],
        );
        assert.equal(parts[0]?.traceId, caller?.traceId);
      }
      assert.equal(receiver.spans.length, 5);
    }));

  test("the death of a worker fails the call with the worker's last output, and every later call", () =>
    withGroup(SPEAKING, async (start) => {
      const group = await start();
      try {
        const open = group.call(asking("die"));
        const next = group.call(asking("answer"));
        await assert.rejects(open, (error) => {
          return (
            error instanceof GroupLostError && /SIGKILL; its last output: .*asked to die/.test(error.message)
          );
        });
        await assert.rejects(next, GroupLostError);
      } finally {
        await group.close();
      }
    }));

  test("a call that is not answered in time ends the group", () =>
    withGroup(
      SPEAKING,
      async (start) => {
        const group = await start();
        try {
          await assert.rejects(group.call(asking("hang")), /no answer to load within 1500 ms/);
          await assert.rejects(group.call(asking("answer")), GroupLostError);
        } finally {
          await group.close();
        }
      },
      { callDeadlineMs: 1_500 },
    ));

  test("close() fails open calls and later ones, and may be called twice", () =>
    withGroup(SPEAKING, async (start) => {
      const group = await start();
      const open = assert.rejects(group.call(asking("hang")), EngineLostError);
      await new Promise((resolve) => setImmediate(resolve));
      await group.close();
      await group.close();
      await open;
      await assert.rejects(group.call(asking("answer")), EngineLostError);
    }));

  test("workers that do not start are reported with their output, the deadline or the missing program", async () => {
    await withGroup("echo no module named torch >&2; exit 1", async (start) => {
      await assert.rejects(start(), /torchrun ended with code 1; its last output: no module named torch/);
    });
    await withGroup(
      "exec sleep 60",
      async (start) => {
        await assert.rejects(start(), /no answer to start within 100 ms/);
      },
      { startDeadlineMs: 100 },
    );
    await withGroup(
      "",
      async (start) => {
        await assert.rejects(start(), /does not start/);
      },
      { python: "/no/such/python" },
    );
  });

  test("a start stops when its signal aborts", () =>
    withGroup("exec sleep 60", async (start) => {
      const ending = new AbortController();
      const started = assert.rejects(start(ending.signal), EngineLostError);
      ending.abort();
      await started;
    }));
});

describe("TorchGroup over two nodes", () => {
  /** Calls `use` with a function that starts a group of two fake workers, one on each node. */
  const overTwo = async (
    use: (start: (signal?: AbortSignal) => Promise<TorchGroup>, nodes: TorchNodes) => Promise<void>,
    changes: Partial<TorchHost> = {},
    worldSize = 2,
  ) => {
    const others = await TorchNodes.listen({ count: 2, host: "127.0.0.1", port: 0, logger: silentLogger() });
    const environment = { PATH: process.env.PATH, FAKE_WORLD_SIZE: "2" };
    const nodes = { others };
    try {
      await withGroup(SPEAKING, (start) => use(start, others), { nodes, environment, ...changes }, worldSize);
    } finally {
      await others.close();
    }
  };
  const facts = { torchVersion: "2.13.0" };

  test("every node starts its ranks with the same rendezvous; close() waits until the ranks of all nodes have ended", () =>
    overTwo(async (start, { port }) => {
      const program = await FakeNode.join(port, facts);
      const group = await start();
      const order = await eventually("an order to start", () => program.started);
      const { group: id, port: meeting } = order;
      assert.deepEqual(
        { ...order, $typeName: undefined, group: id, port: meeting },
        {
          $typeName: undefined,
          group: id,
          nodes: 2,
          ranksPerNode: 1,
          port: meeting,
          device: "cpu",
          threadsPerRank: 1,
          collectiveSeconds: 120,
          startSeconds: 60,
        },
      );
      assert.ok(meeting > 0);
      assert.equal((await group.call(asking("answer"))).case, "done");
      let isClosed = false;
      const closed = group.close().then(() => {
        isClosed = true;
      });
      assert.equal(await eventually("an order to end", () => program.ended), id);
      assert.equal(isClosed, false);
      program.report({ case: "ranksEnded", value: { group: id, reason: "killed" } });
      await closed;
    }));

  test("the group ends when a node's ranks end or the node disconnects, and the error names the node", () =>
    overTwo(async (start, { port }) => {
      const dying = await FakeNode.join(port, facts);
      const first = await start();
      const open = first.call(asking("hang"));
      const { group } = await eventually("an order to start", () => dying.started);
      const value = { group, reason: "torchrun ended with code 1", lines: ["CUDA out of memory"] };
      dying.report({ case: "ranksEnded", value });
      await assert.rejects(open, /node 1: torchrun ended with code 1; its last output: CUDA out of memory/);
      await first.close();

      const second = await start();
      const next = second.call(asking("hang"));
      dying.leave();
      await assert.rejects(next, /node 1: it closed the connection/);
      await second.close();
    }));

  test("a group that fails on this node is ended on the other node too", () =>
    overTwo(async (start, { port }) => {
      const program = await FakeNode.join(port, facts);
      const group = await start();
      await assert.rejects(group.call(asking("die")), /SIGKILL/);
      const id = await eventually("an order to end", () => program.ended);
      program.report({ case: "ranksEnded", value: { group: id, reason: "killed" } });
      await group.close();
    }));

  test("a node that does not connect, has another PyTorch or too few GPUs is reported by its number", async () => {
    await overTwo(
      async (start) => {
        await assert.rejects(start(), /node 1 of 2 .* did not connect within 100 ms/);
      },
      { startDeadlineMs: 100 },
    );
    await overTwo(async (start, { port }) => {
      await FakeNode.join(port, { torchVersion: "2.12.1" });
      await assert.rejects(start(), /PyTorch 2\.12\.1 on node 1 and 2\.13\.0 here/);
    });
    await overTwo(
      async (start, { port }) => {
        await FakeNode.join(port, { ...facts, gpus: 0 });
        await assert.rejects(start(), /0 GPUs on node 1 for 1 workers/);
      },
      { device: "cuda" },
    );
  });

  test("refuses a group whose size differs from the requested one", async () => {
    await overTwo(
      async (start, { port }) => {
        await FakeNode.join(port, facts);
        await assert.rejects(start(), /3 workers on 2 nodes/);
      },
      {},
      3,
    );
    await overTwo(
      async (start, { port }) => {
        const program = await FakeNode.join(port, facts);
        const started = assert.rejects(start(), /a group of 2 workers instead of 4/);
        const group = await eventually("an order to end", () => program.ended);
        program.report({ case: "ranksEnded", value: { group, reason: "killed" } });
        await started;
      },
      {},
      4,
    );
  });

  test("a start that waits for a node stops when its signal aborts", () =>
    overTwo(async (start) => {
      const ending = new AbortController();
      const started = assert.rejects(start(ending.signal), EngineLostError);
      ending.abort();
      await started;
    }));
});

describe("FrameReader", () => {
  test("splits a stream into its messages, wherever the stream is cut", () => {
    const messages = [Buffer.alloc(0), Buffer.from("one"), Buffer.alloc(300, 7)];
    const stream = Buffer.concat(messages.flatMap((message) => encodeFrame(message)));
    for (const size of [1, 2, 5, stream.length]) {
      const reader = new FrameReader();
      const found: Buffer[] = [];
      for (let at = 0; at < stream.length; at += size) {
        found.push(...reader.push(stream.subarray(at, at + size)));
      }
      assert.deepEqual(found, messages, `in pieces of ${size}`);
    }
  });

  test("refuses a length that no message can have", () => {
    assert.throws(
      () => new FrameReader().push(Buffer.from([255, 255, 255, 255])),
      /announce a message of 4294967295 bytes; 2147483647 are allowed/,
    );
  });
});
