import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createLogger } from "@hone/telemetry";
import { temporaryFolder } from "@hone/testing";
import { EngineCallError, EngineLostError } from "../engine/errors.ts";
import { GroupLostError } from "./errors.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import type { TorchHost } from "./fsdp-config.ts";
import { TorchGroup } from "./torch-group.ts";

const FAKE = fileURLToPath(new URL("../testing/fake-workers.ts", import.meta.url));
const NEVER = new AbortController().signal;

/** Starts a group whose interpreter is a script. */
async function withGroup(
  script: string,
  use: (start: (signal?: AbortSignal) => Promise<TorchGroup>, log: string[]) => Promise<void>,
  deadlines: Partial<TorchHost> = {},
): Promise<void> {
  await using folder = await temporaryFolder("group");
  const python = path.join(folder.path, "python");
  await writeFile(python, `#!/bin/sh\n${script}\n`);
  await chmod(python, 0o755);
  const log: string[] = [];
  const host: TorchHost = {
    python,
    device: "cpu",
    threadsPerWorker: 1,
    environment: { PATH: process.env.PATH },
    startDeadlineMs: 60_000,
    callDeadlineMs: 60_000,
    logger: createLogger({ service: "trainer", sink: { write: (line) => log.push(line) } }),
    ...deadlines,
  };
  await use((signal = NEVER) => TorchGroup.start(host, 1, signal), log);
}

const SPEAKING = `exec '${process.execPath}' -e "import('${FAKE}').then((fake) => fake.speakAsWorkers(process))"`;
const asking = (wish: string) => ({ case: "load", value: { optimizerFolder: wish } }) as const;

describe("TorchGroup", () => {
  test("a call is answered or refused, and what workers print is logged", () =>
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

  test("the death of a worker fails the call with its last words, and every later one", () =>
    withGroup(SPEAKING, async (start) => {
      const group = await start();
      try {
        const open = group.call(asking("die"));
        const next = group.call(asking("answer"));
        await assert.rejects(open, (error) => {
          return (
            error instanceof GroupLostError && /SIGKILL; its last words: .*asked to die/.test(error.message)
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

  test("workers that do not come up: what they said, a deadline, or no such program", async () => {
    await withGroup("echo no module named torch >&2; exit 1", async (start) => {
      await assert.rejects(start(), /torchrun ended with code 1; its last words: no module named torch/);
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

  test("a start is given up when its signal aborts", () =>
    withGroup("exec sleep 60", async (start) => {
      const ending = new AbortController();
      const started = assert.rejects(start(ending.signal), EngineLostError);
      ending.abort();
      await started;
    }));
});

describe("FrameReader", () => {
  test("cuts a stream into its messages, however it arrives", () => {
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

  test("a length that no message has is refused", () => {
    assert.throws(() => new FrameReader().push(Buffer.from([255, 255, 255, 255])), /at most \d+ bytes/);
  });
});
