/**
 * The supervised phase before the first step, in which rollouts of a scripted policy or conversations of a dataset are imitated.
 *
 * W1: rollouts come in the same way as all others (jobs, episodes, scores), so a restart makes none again.
 * W2: only rollouts whose outcome says something about the agent are imitated; the tokens that were sampled are learnt.
 */

import type { RunConfig } from "@hone/config";
import { isScorable, Split } from "@hone/core";
import { rolloutTokenCount, weightedSum } from "@hone/rl";
import { Attr, SpanName, withSpan } from "@hone/telemetry";
import { reportTroubles } from "../report/troubles.ts";
import { batchSlots } from "../rollouts/batch-slots.ts";
import type { Job } from "../rollouts/jobs.ts";
import type { ScoredRollout } from "../rollouts/scored-rollout.ts";
import type { Commit } from "../step/ledger.ts";
import { leaveOutUntrainable } from "../step/trainable.ts";
import { readConversations } from "./conversations.ts";
import { imitate } from "./imitate.ts";
import type { RunContext } from "./run-context.ts";

/** Imitation, and the way of its rollouts. */
type WarmStartContext = Parameters<typeof imitate>[0] & Pick<RunContext, "gatherer" | "tasks">;
type WarmStartConfig = NonNullable<RunConfig["warmStart"]>;

/** Progress before the first update. */
const NOTHING_LEARNT = { updatesDone: 0, updatesTotal: 0, loss: Number.NaN };

/**
 * Trains the engine's weights, starting from the last state that an earlier owner saved.
 * @returns the rollouts that were trained, for the ledger of version 0.
 */
export async function warmStart(
  context: WarmStartContext,
  config: WarmStartConfig,
): Promise<Commit["trained"]> {
  return withSpan(
    SpanName.warmStart,
    { parent: "root", attributes: { [Attr.runId]: context.run.runId } },
    async () => {
      if (config.dataset !== undefined) {
        const tellRead = (rolloutsDone: number, rolloutsTotal: number) =>
          context.reporter.warmStartProgress({ rolloutsDone, rolloutsTotal, ...NOTHING_LEARNT });
        await imitate(context, config, await readConversations(context, config.dataset, tellRead));
        return [];
      }
      const scored = await gatherDemonstrations(context, config);
      const usable = scored.filter(
        (rollout) => isScorable(rollout.outcome) && rolloutTokenCount(rollout) > 0,
      ); // W2
      await imitate(
        context,
        config,
        usable.map(({ samples }) => samples),
      );
      return usable.map((rollout) => ({ rollout, reward: weightedSum(rollout.scores), advantage: 0 }));
    },
  );
}

/** Gathers the rollouts of the scripted policy (W1). */
async function gatherDemonstrations(
  context: Pick<WarmStartContext, "run" | "engine" | "tasks" | "gatherer" | "reporter" | "logger">,
  { policy, tasks: count }: WarmStartConfig,
): Promise<ScoredRollout[]> {
  const { run, tasks, gatherer, reporter } = context;
  if (policy === undefined || count === undefined) {
    throw new TypeError("a warm start without a dataset has a policy and tasks");
  }
  const batch = await tasks.warmStart(count);
  const jobs: Job[] = batchSlots(Split.warmStart, 0, batch.tasks.length, 1).map((slot) => ({
    slot,
    task: batch.tasks[slot.task]!,
    cursor: batch.cursors[slot.task]!,
    sampling: run.config.rollout.sampling,
    scriptedPolicy: policy,
    lowestVersion: 0,
    highestVersion: 0,
  }));
  const scored = await gatherer.gather("the warm start", jobs, (rolloutsDone, rolloutsTotal) =>
    reporter.warmStartProgress({ rolloutsDone, rolloutsTotal, ...NOTHING_LEARNT }),
  );
  const demonstrations = leaveOutUntrainable(context, scored);
  reportTroubles(context, "the warm start", demonstrations);
  return demonstrations;
}
