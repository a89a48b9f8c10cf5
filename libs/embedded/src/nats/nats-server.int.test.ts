import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { StartError } from "../errors.ts";
import { commandLineOf, isRunning, sendSignal } from "../processes/process-identity.ts";
import { launchNats, type RunningNats } from "./nats-server.ts";

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), "hone nats "));
});
after(() => rm(root, { recursive: true, force: true }));

async function withClient<T>(
  server: RunningNats,
  work: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const connection = await connect(server.login);
  try {
    return await work(connection);
  } finally {
    await connection.close();
  }
}

async function store(server: RunningNats): Promise<void> {
  await withClient(server, async (connection) => {
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "KEPT", subjects: ["kept"] });
    await jetstream(connection).publish("kept", "a message");
  });
}

function stored(server: RunningNats): Promise<number> {
  return withClient(server, async (connection) => {
    const manager = await jetstreamManager(connection);
    return (await manager.streams.info("KEPT")).state.messages;
  });
}

describe("launchNats()", () => {
  test("keeps stored messages after a stop and after SIGKILL, in a folder whose name has a space", async () => {
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

  test("ends a server that an earlier start left running on the same folder", async () => {
    const folder = join(root, "leftover");
    const first = await launchNats({ folder });
    await using second = await launchNats({ folder });
    assert.equal(isRunning(first.identity), false);
    assert.equal(isRunning(second.identity), true);
  });

  test("fails with the server's log when its port is in use", async () => {
    // The client keeps a connection open on which no server answers, which would keep this process alive.
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

  test("requires a password, and gives each user only its own rights", async () => {
    const users = [
      { name: "all" },
      { name: "few", rights: { publish: ["mine.>"], subscribe: ["_INBOX.>"] } },
    ] as const;
    await using server = await launchNats({ folder: join(root, "users"), users });
    const servers = `127.0.0.1:${server.port}`;
    const refused = { servers, reconnect: false };
    await assert.rejects(connect(refused), /Authorization Violation/);
    await assert.rejects(connect({ ...refused, user: "all" }), /Authorization Violation/);
    await assert.rejects(connect({ ...refused, user: "all", pass: "" }), /Authorization Violation/);
    const { username, password } = new URL(server.urlOf("few"));
    const few = await connect({ servers, user: username, pass: password });
    const reported = (async () => {
      for await (const status of few.status()) if (status.type === "error") return status.error.message;
      return "";
    })();
    few.publish("yours.x");
    assert.match(await reported, /Permissions Violation for Publish to "yours.x"/i);
    await few.close();
  });

  test("keeps its passwords over restarts, hides them from other accounts, and corrects the mode of an open folder", async () => {
    const folder = join(root, "private");
    await mkdir(folder, { mode: 0o755 });
    const log = join(folder, "nats-server.log");
    await writeFile(log, "", { mode: 0o644 });
    const first = await launchNats({ folder });
    await first.stop();
    await using second = await launchNats({ folder });
    assert.equal(second.login.pass, first.login.pass);
    const modes = ["", "nats-server.conf", "passwords.json", "nats-server.log"].map(
      (name) => statSync(join(folder, name)).mode & 0o777,
    );
    assert.deepEqual(modes, [0o700, 0o600, 0o600, 0o600]);
    assert.ok(!commandLineOf(second.pid)?.includes(second.login.pass), "ps shows no password");
  });

  test("starts with new streams in a folder that holds invalid files", async () => {
    const folder = join(root, "rubbish");
    await mkdir(join(folder, "jetstream", "$G", "streams", "half"), { recursive: true });
    await using server = await launchNats({ folder });
    await store(server);
    assert.equal(await stored(server), 1);
  });
});
