/** Publishes a run on a local cluster as NOTES says, and reads its events and its rows. */

import assert from "node:assert/strict";
import { deadline } from "@hone/core";
import { type Bus, connectBus, followOrdered, runOfEvent, StreamName, subjects } from "@hone/messaging";
import { type RunEvent, RunEventSchema } from "@hone/proto-gen/run";
import postgres from "postgres";
import { failureOf } from "../../support/failure.ts";
import type { LocalCluster } from "./local-cluster.ts";

export const RUN_DEADLINE_MS = 600_000;

/** A run with short steps, which tests disturb. */
export const SHORT_STEPS = { tasksPerStep: 2, minibatches: 1, warmStartTasks: 24, evalTasks: 2 };

/** Connects to the bus as the chart's user for clients. */
export function connectClient(cluster: LocalCluster): Promise<Bus> {
  const password = cluster.secret("hone-nats-users", "client");
  return connectBus({ url: `nats://client:${password}@${cluster.addressOf("nats")}:4222`, name: "test" });
}

type OnEvent = (event: RunEvent) => Promise<void>;

/** Publishes the text of a run file as `nats pub` does, and follows its run to the end. */
export async function publishAndFollow(
  cluster: LocalCluster,
  bus: Bus,
  text: string,
  onEvent?: OnEvent,
): Promise<RunEvent[]> {
  const { name } = JSON.parse(text) as { name: string };
  bus.connection.publish("hone.v1.run.request", text);
  await bus.connection.flush();
  return followRun(cluster, bus, name, onEvent);
}

/**
 * Reads all events of a run from the stream, from its beginning to its end, so that none is missed while the bus is down.
 */
export async function followRun(
  cluster: LocalCluster,
  bus: Bus,
  name: string,
  onEvent: OnEvent = async () => undefined,
): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  try {
    await deadline(`the end of ${name}`, RUN_DEADLINE_MS, async (signal) => {
      const following = followOrdered(bus, RunEventSchema, {
        stream: StreamName.events,
        filter: subjects.event("*", "*"),
        signal,
      });
      for await (const { message, subject } of following) {
        if (message.kind.case === "refused") assert.fail(JSON.stringify(message.kind.value.problems));
        if (!runOfEvent(subject).startsWith(`${name}-`)) continue;
        events.push(message);
        if (message.kind.case === "ended") return;
        await onEvent(message);
      }
    });
  } catch (error) {
    throw failureOf(error, cluster.describe());
  }
  return events;
}

/** The event of the run's end. */
export function endOf(events: readonly RunEvent[]) {
  const last = events.at(-1)?.kind;
  return last?.case === "ended" ? last.value : undefined;
}

/** The completed steps, in the order of their events. */
export function stepsOf(events: readonly RunEvent[]): number[] {
  return events.flatMap(({ kind }) => (kind.case === "stepCompleted" ? [Number(kind.value.step)] : []));
}

/** Reads every trained rollout of a run and the digest of the state after each step from the database. */
export async function trainedBy(cluster: LocalCluster, runName: string) {
  const sql = postgres(cluster.database.url, { max: 1 });
  try {
    const rollouts = await sql`
      select slot, version, outcome, reward, advantage, sampled_tokens from trainer.ledger
      where run_id like ${`${runName}-%`} order by slot`;
    const states = await sql`
      select version, state_digest from trainer.steps where run_id like ${`${runName}-%`} order by version`;
    return { rollouts: [...rollouts], states: [...states] };
  } finally {
    await sql.end({ timeout: 5 });
  }
}
