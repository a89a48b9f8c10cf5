import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Bucket, BucketName, openBucket } from "@hone/messaging";
import { startBus, type TestBus } from "@hone/messaging/testing";
import { type ReplicaState, ReplicaStateSchema } from "@hone/proto-gen/policy";
import { RunPhase, type RunState, RunStateSchema } from "@hone/proto-gen/run";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { claimRun } from "./claim-run.ts";

describe("claimRun() on a real bus", { timeout: 120_000 }, () => {
  let bus: TestBus;
  let runs: Bucket<RunState>;
  let replicas: Bucket<ReplicaState>;

  before(async () => {
    bus = await startBus();
    runs = await openBucket(bus, BucketName.runState, RunStateSchema);
    replicas = await openBucket(bus, BucketName.replicas, ReplicaStateSchema);
  });
  after(() => bus?.close());

  /** A replica that claims. `serves` is what it wants loaded: `<run>@<version>`. */
  function startReplica(replica: string) {
    const wanted = new Map<string, number>();
    const stopping = new AbortController();
    const following = claimRun(
      {
        bus,
        replica,
        stateDir: "/state",
        logger: silentLogger(),
        renewEveryMs: 50,
        keeper: {
          want: ({ model, version }) => void wanted.set(model, version),
          drop: (model) => void wanted.delete(model),
        },
      },
      stopping.signal,
    );
    return {
      serves: () => [...wanted].map(([run, version]) => `${run}@${version}`).join(),
      async stop() {
        stopping.abort();
        await following;
      },
    };
  }

  const publish = (run: string, version: number, phase: RunPhase = RunPhase.ROLLOUT, location = "runs/x") =>
    runs.put(run, create(RunStateSchema, { runId: run, phase, version, location, digest: "00" }));
  const claimsOf = async (run: string) => {
    const places = await Promise.all([0, 1, 2, 3, 4, 5].map((place) => replicas.get(`${run}.=${place}`)));
    return places.flatMap((entry) => entry?.value.replica ?? []).sort();
  };

  test("each replica serves one run, all of its versions, until it ends", async () => {
    await publish("first-1", 1);
    await publish("second-2", 7);
    await publish("no-weights-3", 0, RunPhase.WAITING, "");
    const [a, b] = [startReplica("a"), startReplica("b")];
    try {
      await eventually("both runs to be served", () => a.serves() !== "" && b.serves() !== "");
      assert.deepEqual([a.serves(), b.serves()].sort(), ["first-1@1", "second-2@7"]);
      await publish("first-1", 2);
      await eventually("the new version", () => [a.serves(), b.serves()].includes("first-1@2"));
      // A third replica takes the run with fewer claims; both have one.
      const c = startReplica("c");
      await eventually("the third to serve", () => c.serves() !== "");
      await c.stop();
      await eventually("its claim to be given back", async () => {
        const claims = [...(await claimsOf("first-1")), ...(await claimsOf("second-2"))];
        return claims.join() === "a,b" || claims.join() === "b,a";
      });
      await publish("second-2", 7, RunPhase.COMPLETED);
      await eventually(
        "both to serve the other run",
        () => a.serves() + b.serves() === "first-1@2".repeat(2),
      );
      assert.deepEqual(await claimsOf("second-2"), []);
      assert.deepEqual(await claimsOf("first-1"), ["a", "b"]);
    } finally {
      await Promise.all([a.stop(), b.stop()]);
    }
    assert.deepEqual(await claimsOf("first-1"), []);
    await publish("first-1", 2, RunPhase.COMPLETED);
  });

  test("two replicas share the policies of one run, and both are free when it ends", async () => {
    const policies = [{ model: "pair-4_rival", version: 3, location: "runs/x/policies/rival", digest: "00" }];
    const state = { runId: "pair-4", version: 3, location: "runs/x", digest: "00", policies };
    await runs.put("pair-4", create(RunStateSchema, { ...state, phase: RunPhase.ROLLOUT }));
    const [a, b] = [startReplica("a"), startReplica("b")];
    try {
      await eventually("both to serve", () => a.serves() !== "" && b.serves() !== "");
      assert.deepEqual([a.serves(), b.serves()].sort(), ["pair-4@3", "pair-4_rival@3"]);
      await runs.put("pair-4", create(RunStateSchema, { ...state, phase: RunPhase.COMPLETED }));
      await eventually("both to be free", () => a.serves() + b.serves() === "");
    } finally {
      await Promise.all([a.stop(), b.stop()]);
    }
  });

  test("many replicas that start at once share the runs evenly", async () => {
    const names = ["r1", "r2", "r3", "r4", "r5", "r6"];
    const started = names.map((name) => startReplica(name));
    try {
      for (const run of ["x-1", "x-2", "x-3"]) await publish(run, 1);
      await eventually("all to serve", () => started.every((replica) => replica.serves() !== ""));
      // Replicas that were free when a run came serve it; none of the later ones stays free because its compare-and-set failed.
      const counts = await Promise.all(
        ["x-1", "x-2", "x-3"].map(async (run) => (await claimsOf(run)).length),
      );
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        names.length,
      );
    } finally {
      await Promise.all(started.map((replica) => replica.stop()));
    }
    const again = names.map((name) => startReplica(name));
    try {
      await eventually("all to serve again", () => again.every((replica) => replica.serves() !== ""));
      for (const run of ["x-1", "x-2", "x-3"]) assert.equal((await claimsOf(run)).length, 2, run);
    } finally {
      await Promise.all(again.map((replica) => replica.stop()));
    }
    for (const run of ["x-1", "x-2", "x-3"]) await publish(run, 1, RunPhase.CANCELLED);
  });

  test("a replica that was restarted continues with the run that it had", async () => {
    for (const run of ["y-1", "y-2"]) await publish(run, 1);
    const state = create(ReplicaStateSchema, { replica: "k", model: "y-2" });
    await replicas.put("y-2.=0", state);
    const k = startReplica("k");
    try {
      await eventually("its run", () => k.serves() === "y-2@1");
      assert.deepEqual(await claimsOf("y-1"), []);
      // Its claim is lost, as after an outage of the bus. It claims the run again, and serves it all the time.
      await replicas.delete("y-2.=0");
      await eventually("the claim again", async () => (await claimsOf("y-2")).join() === "k");
      assert.equal(k.serves(), "y-2@1");
    } finally {
      await k.stop();
    }
  });
});
