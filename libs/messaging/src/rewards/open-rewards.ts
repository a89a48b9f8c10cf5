/** What the trainer and the command line see of rollouts that wait for rewards, and how the trainer drops them. */

import { fromBinary } from "@bufbuild/protobuf";
import { type RolloutRewards, RolloutRewardsSchema } from "@hone/proto-gen/judge";
import type { Bus } from "../bus.ts";
import { translateBusError } from "../errors.ts";
import { latestMessage } from "../follow/follow-messages.ts";
import {
  givenSubjects,
  openSubjects,
  REWARDS_STREAM,
  runOfRewardSubject,
  runSubjects,
} from "./reward-keys.ts";

/** The rollouts of a run that wait for rewards. */
export interface OpenRewards {
  readonly rollouts: readonly RolloutRewards[];
  /** First revision of the bucket that belongs to one of them, or that came after they were read. */
  readonly firstRevision: number;
  /** Whether keys are still listed that were removed. */
  readonly hasRemoved: boolean;
}

/** Requests at a time; all are answered by one server, and thousands at once would only wait there. */
const READ_WINDOW = 256;

/** @throws {BusUnavailableError} when the server does not answer. */
export async function openRewardsOf(bus: Bus, run: string): Promise<OpenRewards> {
  try {
    const { subjects, lastRevision } = await keysOf(bus, openSubjects(run));
    const rollouts: RolloutRewards[] = [];
    let firstRevision = lastRevision + 1;
    for (let from = 0; from < subjects.length; from += READ_WINDOW) {
      const window = subjects.slice(from, from + READ_WINDOW);
      const found = await Promise.all(window.map((subject) => latestMessage(bus, REWARDS_STREAM, subject)));
      for (const stored of found) {
        // A key that was removed is still listed, with a message that says so.
        if (stored === undefined || stored.header.get("KV-Operation") !== "") continue;
        firstRevision = Math.min(firstRevision, stored.seq);
        rollouts.push(fromBinary(RolloutRewardsSchema, stored.data));
      }
    }
    return { rollouts, firstRevision, hasRemoved: rollouts.length < subjects.length };
  } catch (error) {
    throw translateBusError(error, "look for rollouts that wait for rewards", run);
  }
}

/** @returns the runs about whose rewards something is kept. */
export async function runsWithRewards(bus: Bus): Promise<string[]> {
  try {
    // What a judge adds while the rewards of its run are dropped is found by its open key.
    const kinds = [runSubjects("*"), openSubjects("*")];
    const keys = await Promise.all(kinds.map((filter) => keysOf(bus, filter)));
    return [...new Set(keys.flatMap(({ subjects }) => subjects.map(runOfRewardSubject)))];
  } catch (error) {
    throw translateBusError(error, "look for runs with rewards", REWARDS_STREAM);
  }
}

/** Removes everything about the rewards of a run that is over. */
export async function dropRewards(bus: Bus, run: string): Promise<void> {
  await purge(bus, givenSubjects(run));
  await purge(bus, openSubjects(run));
  await purge(bus, runSubjects(run));
}

/** Removes the messages that only say that a key of a run was removed, as far as no open rollout comes before them. */
export async function dropRemovedRewards(
  bus: Bus,
  run: string,
  { firstRevision, hasRemoved }: OpenRewards,
): Promise<void> {
  if (hasRemoved && firstRevision > 1) await purge(bus, openSubjects(run), firstRevision);
}

async function purge(bus: Bus, filter: string, seq?: number): Promise<void> {
  try {
    await bus.manager.streams.purge(REWARDS_STREAM, seq === undefined ? { filter } : { filter, seq });
  } catch (error) {
    throw translateBusError(error, "drop rewards", filter);
  }
}

async function keysOf(bus: Bus, filter: string): Promise<{ subjects: string[]; lastRevision: number }> {
  const { state } = await bus.manager.streams.info(REWARDS_STREAM, { subjects_filter: filter });
  return { subjects: Object.keys(state.subjects ?? {}), lastRevision: state.last_seq };
}
