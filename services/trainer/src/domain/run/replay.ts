/**
 * Computes the state of a committed version again where it was written without the optimizer: the steps since the last state
 * with the optimizer are trained again, on the same rollouts.
 *
 * P1: no rollout is made again: the stream still holds those of every step since that state, because the commits since then
 *     did not move its position; where a slot has two episodes, the first counts, as it did before. Rewards and advantages
 *     come from the ledger: no judge is asked again.
 * P2: the weights must be the same bit for bit: their digest is the committed one, or the run does not go on. An engine of
 *     other arithmetic (more workers, another processor) adds in another order, so its weights differ in rounding: they
 *     replace the committed ones under their own digest, and that is logged as a warning.
 * P3: the new state is written and recorded, so that the next restart begins there.
 */

import { slotKey } from "@hone/core";
import { partOfRole } from "@hone/rl";
import { Attr, SpanName, withSpan } from "@hone/telemetry";
import { criticWriter } from "../critic/critic-state.ts";
import { OwnershipLostError } from "../errors.ts";
import { recallRollouts } from "../groups/keep-groups.ts";
import { learnersWriter } from "../learners/learner-state.ts";
import { RunPhase } from "../report/run-status.ts";
import { WaitOwner } from "../report/wait.ts";
import { BrokenStateError } from "../state/check-state.ts";
import { dropUnneededEpisodes } from "../state/episode-room.ts";
import { loadState } from "../state/load-state.ts";
import { removeOldStates, writeState } from "../state/write-state.ts";
import { type LearnContext, learnAgain } from "../step/learn.ts";
import type { RunContext } from "./run-context.ts";
import type { Recovery } from "./run-record.ts";

type ReplayContext = LearnContext &
  Pick<
    RunContext,
    "learners" | "ledger" | "rollouts" | "folders" | "reporter" | "inbox" | "gatherer" | "logger" | "progress"
  >;

/**
 * @returns the version's state, the optimizer included.
 * @throws {BrokenStateError | LostRolloutsError} when the weights or the rollouts are not those that the commits recorded.
 */
export async function replay(context: ReplayContext, from: Recovery, version: number): Promise<Recovery> {
  const { run, engine, folders, gatherer, inbox, ledger, reporter, progress, logger } = context;
  return withSpan(
    SpanName.replay,
    {
      parent: "root",
      attributes: { [Attr.runId]: run.runId, [Attr.policyVersion]: version, [Attr.ownerEpoch]: run.epoch },
    },
    async () => {
      reporter.phase(RunPhase.train, version);
      await loadState(context, from, { hasOptimizer: true });
      progress.trained = from.version;
      for (let step = (from.version ?? 0) + 1; step <= version; step++) {
        const trained = await reporter.untilAvailable(
          { text: "the database (ledger)", owner: WaitOwner.database },
          () => ledger.trained(run.runId, step),
        );
        const slots = [...new Map(trained.map(({ slot }) => [slotKey(slot), slot])).values()];
        const recalled =
          run.config.replay === undefined
            ? await gatherer.recall(`step ${step}`, slots) // P1
            : await recallRollouts(context, step, slots);
        const scored = new Map(recalled.map((rollout) => [slotKey(rollout.slot), rollout]));
        await learnAgain(
          context,
          step,
          trained.map(({ slot, role, ...worth }) => {
            const whole = scored.get(slotKey(slot))!;
            return { rollout: run.config.roles === undefined ? whole : partOfRole(whole, role), ...worth };
          }),
        );
        progress.trained = step;
        inbox.prune();
      }
      const folder = folders.state(version, run.epoch);
      const writeCritic = criticWriter(context, version);
      const { digest, files } = await writeState(context, folder, {
        isWhole: true,
        writeLearners: learnersWriter(context.learners, version, true),
        writeCritic,
      });
      if (digest !== run.stateDigest) {
        if (run.arithmetic === "" || run.arithmetic === engine.arithmetic) {
          throw new BrokenStateError(
            `The steps since version ${from.version} were trained again and made weights of SHA-256 ${digest}, where version ${version} was committed with ${run.stateDigest}`,
          ); // P2
        }
        logger.warn(
          "the replayed steps made other weights because another arithmetic computed them; the run goes on from the new weights",
          {
            version,
            committedBy: run.arithmetic,
            committedDigest: run.stateDigest,
            replayedBy: engine.arithmetic,
            replayedDigest: digest,
          },
        );
      }
      const recovery = { folder, digest, files, version, warmUpdates: 0 };
      const { neededFrom } = inbox;
      const isOurs = await reporter.untilAvailable(
        { text: "the database (replay)", owner: WaitOwner.database },
        () => ledger.recordRecovery(run.runId, run.epoch, recovery, neededFrom),
      ); // P3
      if (!isOurs) throw new OwnershipLostError(run.runId, run.epoch);
      progress.recovery = recovery;
      progress.neededFrom = neededFrom;
      await removeOldStates(context, {
        committed: folder,
        recovery: folder,
        oldestVersion: version - 1,
        epoch: run.epoch,
      });
      // The episodes may fill the stream, and then no step could end and drop them.
      await dropUnneededEpisodes(context);
      logger.info("steps replayed", { from: from.version, to: version });
      return recovery;
    },
  );
}
