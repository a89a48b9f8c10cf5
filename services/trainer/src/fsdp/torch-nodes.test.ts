import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SettingError } from "@hone/service-kit";
import { silentLogger } from "@hone/telemetry";
import { eventually } from "@hone/testing";
import { FakeNode } from "../testing/fake-node.ts";
import { GroupLostError } from "./errors.ts";
import type { RanksEnd } from "./torch-node.ts";
import { TorchNodes } from "./torch-nodes.ts";

const NEVER = new AbortController().signal;
const DEADLINE_MS = 60_000;

async function withNodes(
  use: (nodes: TorchNodes) => Promise<void>,
  changes: { readonly count?: number; readonly beatMs?: number } = {},
): Promise<void> {
  const nodes = await TorchNodes.listen({
    count: 2,
    host: "127.0.0.1",
    port: 0,
    logger: silentLogger(),
    ...changes,
  });
  try {
    await use(nodes);
  } finally {
    await nodes.close();
  }
}

const order = (group: string) => ({ group, nodes: 2, ranksPerNode: 1, port: 1 });

describe("TorchNodes", () => {
  test("gather() waits until every node has connected, in any order", () =>
    withNodes(
      async (nodes) => {
        const gathered = nodes.gather(DEADLINE_MS, NEVER);
        await FakeNode.join(nodes.port, { index: 2, gpus: 8 });
        await eventually("the second node", () => nodes.missing.length === 1);
        assert.deepEqual(nodes.missing, [1]);
        await FakeNode.join(nodes.port, { index: 1 });
        assert.deepEqual(
          (await gathered).map(({ facts }) => facts),
          [
            { index: 1, torchVersion: "none", gpus: 0 },
            { index: 2, torchVersion: "none", gpus: 8 },
          ],
        );
      },
      { count: 3 },
    ));

  test("gather() names the nodes that do not connect in time, and stops when its signal aborts", () =>
    withNodes(
      async (nodes) => {
        await assert.rejects(
          nodes.gather(50, NEVER),
          (error) =>
            error instanceof GroupLostError &&
            /nodes 1, 2 of 3 .* did not connect within 50 ms/.test(error.message),
        );
        const ending = new AbortController();
        const gathered = nodes.gather(DEADLINE_MS, ending.signal);
        ending.abort(new Error("enough"));
        await assert.rejects(gathered, /enough/);
      },
      { count: 3 },
    ));

  test("refuses a node whose number is too high, and tells it the reason", () =>
    withNodes(async (nodes) => {
      const node = await FakeNode.join(nodes.port, { index: 2 });
      assert.match(
        await eventually("a refusal", () => node.refused),
        /has the nodes 1 to 1 beside its own, so node 2 cannot/,
      );
      await eventually("its end", () => node.isClosed);
      assert.deepEqual(nodes.missing, [1]);
    }));

  test("ranks start and end as ordered, with several groups at the same time", () =>
    withNodes(async (nodes) => {
      const program = await FakeNode.join(nodes.port);
      const [node] = await nodes.gather(DEADLINE_MS, NEVER);
      const ends: [string, RanksEnd][] = [];
      for (const group of ["a", "b"]) node!.startRanks(order(group), (end) => ends.push([group, end]));
      assert.equal((await eventually("an order to start", () => program.started)).group, "a");
      program.report({
        case: "ranksEnded",
        value: { group: "b", reason: "code 1", lines: ["out of memory"] },
      });
      await eventually("the end of b", () => ends.length === 1);
      assert.deepEqual(ends, [["b", { reason: "code 1", lines: ["out of memory"] }]]);

      let isOver = false;
      const ended = node!.endRanks("a").then(() => {
        isOver = true;
      });
      assert.equal(await eventually("an order to end", () => program.ended), "a");
      assert.equal(isOver, false);
      program.report({ case: "ranksEnded", value: { group: "a", reason: "killed" } });
      await ended;
      // The group has ended already, so there is nothing to wait for.
      await node!.endRanks("a");
    }));

  test("the groups of a node that disconnects end, and the node may connect again", () =>
    withNodes(async (nodes) => {
      const program = await FakeNode.join(nodes.port);
      const [node] = await nodes.gather(DEADLINE_MS, NEVER);
      const ended = new Promise<RanksEnd>((resolve) => node!.startRanks(order("a"), resolve));
      program.leave();
      assert.match((await ended).reason, /closed the connection/);
      assert.deepEqual(nodes.missing, [1]);
      // A caller that still uses the disconnected node is informed at once.
      node!.startRanks(order("b"), ({ reason }) => assert.match(reason, /closed the connection/));
      await FakeNode.join(nodes.port);
      await nodes.gather(DEADLINE_MS, NEVER);
    }));

  test("a node that connects again replaces its earlier connection", () =>
    withNodes(async (nodes) => {
      const earlier = await FakeNode.join(nodes.port);
      const [node] = await nodes.gather(DEADLINE_MS, NEVER);
      const ended = new Promise<RanksEnd>((resolve) => node!.startRanks(order("a"), resolve));
      const later = await FakeNode.join(nodes.port);
      assert.match((await ended).reason, /connected anew/);
      await eventually("the end of the earlier one", () => earlier.isClosed);
      const [found] = await nodes.gather(DEADLINE_MS, NEVER);
      found!.startRanks(order("b"), () => undefined);
      assert.equal((await eventually("an order to start", () => later.started)).group, "b");
    }));

  test("disconnects a node that sends nothing, and keeps a node that sends heartbeats", () =>
    withNodes(
      async (nodes) => {
        const lively = await FakeNode.join(nodes.port, { index: 1 });
        const silent = await FakeNode.join(nodes.port, { index: 2 });
        const beating = setInterval(() => lively.report({ case: "beat", value: {} }), 10);
        try {
          await nodes.gather(DEADLINE_MS, NEVER);
          await eventually("the end of the silent one", () => silent.isClosed, { deadlineMs: DEADLINE_MS });
          assert.deepEqual(nodes.missing, [2]);
          assert.equal(lively.isClosed, false);
          assert.ok(silent.orders.length > 1, "it heard beats itself");
        } finally {
          clearInterval(beating);
        }
      },
      { count: 3, beatMs: 100 },
    ));

  test("bytes that are not a message end the connection", () =>
    withNodes(async (nodes) => {
      const node = await FakeNode.join(nodes.port);
      await nodes.gather(DEADLINE_MS, NEVER);
      node.reportBytes(Uint8Array.of(255, 255, 255, 255));
      await eventually("its end", () => node.isClosed);
    }));

  test("a port that is in use is reported with the name of its variable", () =>
    withNodes(async ({ port }) => {
      const listening = TorchNodes.listen({ count: 2, host: "127.0.0.1", port, logger: silentLogger() });
      await assert.rejects(
        listening,
        (error) => error instanceof SettingError && /HONE_TRAINER_NODES_PORT/.test(error.message),
      );
    }));
});
