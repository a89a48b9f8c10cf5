import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { identifyProcess } from "@hone/embedded";
import { absurdJson, damaged, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { UsageError } from "../errors.ts";
import { findProject } from "../project.ts";
import { parseReplicas, replicasOf } from "./replicas.ts";
import { portOf } from "./service-process.ts";
import { readStack, stackHolder, takeStackLock, writeStack } from "./stack-file.ts";

const root = mkdtempSync(join(tmpdir(), "hone-stack-"));
after(() => rmSync(root, { recursive: true, force: true }));
let numProjects = 0;
const newProject = () => findProject({ HONE_FILES: join(root, String(numProjects++)) });
const record = {
  startedAtMs: 1,
  natsUrl: "nats://x",
  databaseUrl: "postgres://x",
  pageUrl: "http://x",
  token: "a-token",
  replicas: parseReplicas("agent-rollout=2", "a test", ["trainer"]),
  services: {},
  silent: {},
};

describe("the stack's lock", () => {
  test("lets only one stack run in a project", () => {
    const project = newProject();
    using _lock = takeStackLock(project);
    assert.equal(stackHolder(project)?.pid, process.pid);
    assert.throws(
      () => takeStackLock(project),
      (error) => error instanceof UsageError && /already running in /.test(error.message),
    );
  });

  test("can be taken if its process is gone or its file is damaged", () => {
    const rebooted = JSON.stringify({ pid: process.pid, startedAt: "before the reboot" });
    for (const content of [rebooted, "", "{", "{}", "null"]) {
      const project = newProject();
      takeStackLock(project).release();
      writeFileSync(project.lockFile, content);
      using _lock = takeStackLock(project);
      assert.equal(stackHolder(project)?.pid, process.pid);
    }
  });
});

describe("the stack's record", () => {
  test("can be read while its writer runs, and only by its owner's account", () => {
    const project = newProject();
    using lock = takeStackLock(project);
    writeStack(project, record);
    assert.equal(readStack(project)?.natsUrl, "nats://x");
    assert.deepEqual(readStack(project)?.replicas, record.replicas);
    assert.equal(statSync(project.stackFile).mode & 0o077, 0);
    lock.release();
    assert.equal(readStack(project), undefined);
  });

  test("is ignored once its writer is gone", () => {
    const project = newProject();
    takeStackLock(project).release();
    const supervisor = { pid: process.pid, startedAt: "another start" };
    writeFileSync(project.stackFile, JSON.stringify({ ...record, supervisor }));
    assert.equal(readStack(project), undefined);
  });
});

describe("damaged files of a stack", () => {
  const own = identifyProcess(process.pid)!;
  const whole = { supervisor: own, ...record, services: { judge: { pid: 7, httpPort: 8, restarts: 0 } } };
  /** Random bytes, JSON of any shape, and a valid record with one wrong value. */
  const contents = (real: Readonly<Record<string, unknown>>) =>
    fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      damaged(Buffer.from(JSON.stringify(real))),
      absurdJson.map((value) => Buffer.from(JSON.stringify(value))),
      fc
        .tuple(fc.constantFrom(...Object.keys(real)), absurdJson)
        .map(([key, value]) => Buffer.from(JSON.stringify({ ...real, [key]: value }))),
    );

  test("a lock of any bytes is held by a running process, or free", () => {
    const project = newProject();
    takeStackLock(project).release();
    const holders = contents({ ...own });
    fc.assert(
      fc.property(holders, (bytes) => {
        writeFileSync(project.lockFile, bytes);
        const holder = stackHolder(project);
        if (holder !== undefined) {
          assert.deepEqual(holder, own);
          assert.throws(() => takeStackLock(project), UsageError);
          rmSync(project.lockFile);
        }
        takeStackLock(project).release();
      }),
      fuzz(300),
    );
  });

  test("a record of any bytes is complete, or ignored", () => {
    const project = newProject();
    takeStackLock(project).release();
    fc.assert(
      fc.property(contents(whole), (bytes) => {
        writeFileSync(project.stackFile, bytes);
        const read = readStack(project);
        if (read === undefined) return;
        assert.deepEqual(read.supervisor, own);
        for (const url of [read.natsUrl, read.databaseUrl, read.pageUrl, read.token])
          assert.equal(typeof url, "string");
        assert.ok(replicasOf(read.replicas).length <= 6 * 16);
        for (const service of Object.values(read.services)) assert.ok(Number.isSafeInteger(service.httpPort));
      }),
      fuzz(300),
    );
  });

  test("a ready file of any shape has a valid port, or is ignored", () => {
    fc.assert(
      fc.property(fc.oneof(absurdJson, fc.record({ pid: fc.constant(7), httpPort: absurdJson })), (value) => {
        const port = portOf(value, 7);
        assert.ok(port === undefined || (Number.isInteger(port) && port > 0 && port < 65_536));
      }),
      fuzz(300),
    );
    assert.equal(portOf({ pid: 7, httpPort: 80 }, 7), 80);
    assert.equal(portOf({ pid: 8, httpPort: 80 }, 7), undefined);
  });
});
