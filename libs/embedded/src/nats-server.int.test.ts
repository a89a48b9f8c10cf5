import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { StartError } from "./errors.ts";
import { launchNats, type RunningServer } from "./nats-server.ts";
import { isRunning, sendSignal } from "./process-identity.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "hone nats "));
});
after(() => rm(root, { recursive: true, force: true }));

async function withClient<T>(
  server: RunningServer,
  work: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect({ servers: server.url });
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

async function store(server: RunningServer): Promise<void> {
  await withClient(server, async (connection) => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
    await jetstream(connection).publish("kept", "a message");
  });
}

function stored(server: RunningServer): Promise<number> {
  return withClient(server, async (connection) => {
    const manager = await jetstreamManager(connection);
    return (await manager.streams.info("KEPT")).state.messages;
  });
}

describe("launchNats()", () => {
  test("keeps what was stored over a stop and over SIGKILL, in a folder with a space", async () => {
    const folder = join(root, "kept");
    const first = await launchNats({ folder });
    await store(first);
    await first.stop();
    const second = await launchNats({ folder, port: first.port });
    assert.equal(second.port, first.port);
    sendSignal(second.pid, "SIGKILL");
    await second.exited;
    await using third = await launchNats({ folder });
    assert.equal(await stored(third), 1);
  });

  test("ends the server that an earlier start left on the same folder", async () => {
    const folder = join(root, "leftover");
    const first = await launchNats({ folder });
    await using second = await launchNats({ folder });
    assert.equal(isRunning(first.identity), false);
    assert.equal(isRunning(second.identity), true);
  });

  test("fails with the server's words when its port is taken", async () => {
    // The client leaves a connection open on which nobody greets it, and that would keep this process alive.
    const met = new Set<Socket>();
    const taken = createServer((socket) => met.add(socket)).listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const address = taken.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      await assert.rejects(
        launchNats({ folder: join(root, "taken"), port }),
        (error) => error instanceof StartError && /address already in use/.test(error.logTail),
      );
    } finally {
      taken.close();
      for (const socket of met) socket.destroy();
    }
  });

  test("makes streams anew in a folder that holds rubbish", async () => {
    const folder = join(root, "rubbish");
    await mkdir(join(folder, "jetstream", "$G", "streams", "half"), { recursive: true });
    await using server = await launchNats({ folder });
    await store(server);
    assert.equal(await stored(server), 1);
  });
});
