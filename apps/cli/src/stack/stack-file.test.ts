import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { UsageError } from "../errors.ts";
import { findProject } from "../project.ts";
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
  services: {},
  silent: {},
};

describe("the stack's lock", () => {
  test("lets one stack run in a project", () => {
    const project = newProject();
    using _lock = takeStackLock(project);
    assert.equal(stackHolder(project)?.pid, process.pid);
    assert.throws(
      () => takeStackLock(project),
      (error) => error instanceof UsageError && /runs in .* already/.test(error.message),
    );
  });

  test("is taken from a process that is gone, and from a damaged file", () => {
    for (const content of [JSON.stringify({ pid: process.pid, startedAt: "before the reboot" }), "", "{"]) {
      const project = newProject();
      takeStackLock(project).release();
      writeFileSync(project.lockFile, content);
      using _lock = takeStackLock(project);
      assert.equal(stackHolder(project)?.pid, process.pid);
    }
  });
});

describe("the stack's record", () => {
  test("is read by others while its writer runs, and only by its owner's account", () => {
    const project = newProject();
    using lock = takeStackLock(project);
    writeStack(project, record);
    assert.equal(readStack(project)?.natsUrl, "nats://x");
    assert.equal(statSync(project.stackFile).mode & 0o077, 0);
    lock.release();
    assert.equal(readStack(project), undefined);
  });

  test("does not count once its writer is gone", () => {
    const project = newProject();
    takeStackLock(project).release();
    const supervisor = { pid: process.pid, startedAt: "another start" };
    writeFileSync(project.stackFile, JSON.stringify({ ...record, supervisor }));
    assert.equal(readStack(project), undefined);
  });
});
