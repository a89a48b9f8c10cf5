import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RetryableError, TerminalError } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { eventually, temporaryFolder } from "@hone/testing";
import { testConfig, testRun } from "../../testing/fake-run.ts";
import { HashEngine } from "../../testing/hash-engine.ts";
import { MemoryWorld } from "../../testing/memory-world.ts";
import { Admission } from "../admission/admission.ts";
import type { RunRegistry } from "./run-registry.ts";
import { MAX_TENURES, RunSupervisor } from "./run-supervisor.ts";

const LEASE_MS = 200;

/** A supervisor over one active run in memory. */
function supervise(world: MemoryWorld, stateRoot: string) {
  let leaseOwner: string | undefined;
  const registry: RunRegistry = {
    insert: async () => ({ kind: "known" }),
    claim: async (owner, _leaseMs, heldHere) => {
      if (world.ending !== undefined || heldHere.includes(world.run.runId)) return [];
      if (leaseOwner !== undefined && leaseOwner !== owner) return [];
      leaseOwner = owner;
      return [world.takeOver()];
    },
    activate: async () => true,
    remove: async () => undefined,
    recordSurvival: async () => undefined,
    release: async () => {
      leaseOwner = undefined;
    },
    requestControl: async () => world.run,
    resume: async () => undefined,
    overAmong: async () => [],
    load: async () => world.run,
  };
  const logger = silentLogger();
  const admission = new Admission({
    stateRoot,
    registry,
    board: { ...world.board, remove: async () => undefined },
    events: { ...world.eventSink, refused: async () => undefined },
    validators: { services: [], validate: async () => [] },
    models: { folderOf: async ({ path: folder }) => folder },
    engineProblems: async () => [],
    logger,
  });
  return new RunSupervisor(
    { owner: "me", leaseMs: LEASE_MS, minPauseMs: 5 },
    {
      registry,
      ledger: world,
      admission,
      tenure: {
        stateRoot,
        ledger: world,
        jobs: world.jobs,
        rollouts: world,
        pipeline: world.pipeline,
        groupJudges: world.groupJudges,
        tasks: world,
        board: world.board,
        events: world.eventSink,
        createEngine: async () => new HashEngine(world),
        logger,
      },
      logger,
    },
  );
}

describe("RunSupervisor", { timeout: 60_000 }, () => {
  test("starts a run again from its last commit when the engine is lost", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun());
    let losses = 0;
    world.point = (name) => {
      if (name === "train" && losses < 2) {
        losses++;
        throw new RetryableError("ENGINE_LOST", "the engine's thread has ended with code 1");
      }
    };
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await eventually("the end", () => world.ending);
    await supervisor.stop();
    assert.equal(world.ending, "completed");
    assert.equal(world.run.epoch, 1 + 3);
    assert.deepEqual(new Set(world.executions.values()), new Set([1]));
  });

  test("ends a run as failed when it fails again and again without a commit, and says why", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun());
    world.point = (name) => {
      if (name === "train") throw new TerminalError("NON_FINITE", "the loss is not finite: NaN");
    };
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await eventually("the end", () => world.ending, { deadlineMs: 30_000 });
    await supervisor.stop();
    assert.equal(world.ending, "failed");
    // The first tenure made version 0, which is progress; five more made none.
    assert.equal(world.run.epoch, 1 + 6);
    const ended = world.events.map(({ event }) => event).find((event) => event.kind === "ended");
    assert.match(ended?.reason ?? "", /loss is not finite: NaN/);
    assert.equal(world.status?.phase, "failed");
  });

  test("ends a run as failed once several trainers in a row died with it, without training it again", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun({ tenures: MAX_TENURES + 1 }));
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await eventually("the end", () => world.ending);
    await supervisor.stop();
    assert.equal(world.ending, "failed");
    assert.equal(world.executions.size, 0);
    const ended = world.events.map(({ event }) => event).find((event) => event.kind === "ended");
    assert.match(ended?.reason ?? "", /10 trainers in a row died with it/);
  });

  test("never gives a run up for a failure that may pass", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun());
    let failures = 0;
    world.point = (name) => {
      if (name === "train" && failures++ < 6) {
        throw new RetryableError("ENGINE_LOST", "the engine's thread has ended with code 1");
      }
    };
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await eventually("the end", () => world.ending, { deadlineMs: 40_000 });
    await supervisor.stop();
    assert.equal(world.ending, "completed");
  });

  test("waits while the database is away and loses nothing", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun({ config: testConfig() }));
    let away = 0;
    world.point = (name) => {
      if (name === "before commit" && away++ % 3 !== 2) {
        throw new RetryableError("DATABASE_UNAVAILABLE", "the database is away");
      }
    };
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await eventually("the end", () => world.ending);
    await supervisor.stop();
    assert.equal(world.ending, "completed");
    assert.equal(world.run.epoch, 2, "the same owner waited");
  });

  test("stop() gives the lease back and leaves the run unfinished", async () => {
    await using root = await temporaryFolder();
    const world = new MemoryWorld(testRun());
    const held = Promise.withResolvers<void>();
    world.batch = async () => {
      held.resolve();
      throw new RetryableError("AWAY", "dataset does not answer");
    };
    const supervisor = supervise(world, root.path);
    supervisor.start();
    await held.promise;
    await eventually("the published wait", () => world.status?.waitingFor.includes("tasks from dataset"));
    await supervisor.stop();
    assert.deepEqual(supervisor.heldRuns, []);
    assert.equal(world.ending, undefined);
  });
});
