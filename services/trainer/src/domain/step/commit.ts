/**
 * The commit of a version (architecture, part 5, rule 1).
 *
 *   1. state files are written to a temporary folder, synced, and renamed to <version>-<epoch>: the weights, and the
 *      optimizer where that is due (see state-cadence.ts) or where the stream of episodes fills (see episode-room.ts)
 *   2. one transaction: ledger rows and the run's version, where epoch and version k-1 still hold
 *   3. RUN_STATE moves by compare-and-set
 *
 * C1: a crash before 2 leaves an orphan folder, which the next owner removes; the step is made again from the episodes.
 * C2: a crash between 2 and 3 is repaired by the next owner, which publishes what the row says.
 *     So is one between 2 and the keeping of a state that replays may begin with (kept-states.ts).
 * C3: when the answer of 2 is lost, the row shows whether the commit took effect.
 */

import { startVersion } from "@hone/config";
import { Attr, recordedTraceparent, SpanName, withSpan } from "@hone/telemetry";
import { criticWriter } from "../critic/critic-state.ts";
import { OwnershipLostError } from "../errors.ts";
import { keepEarlier } from "../learners/keep-earlier.ts";
import { learnersWriter, servedLearners } from "../learners/learner-state.ts";
import { identityOf } from "../record/run-identity.ts";
import type { GatheredTroubles } from "../report/run-status.ts";
import { RunPhase } from "../report/run-status.ts";
import { WaitOwner } from "../report/wait.ts";
import type { RunContext } from "../run/run-context.ts";
import { isWholeStateWanted } from "../state/episode-room.ts";
import { keepState } from "../state/kept-states.ts";
import { isEvaluationDue, isReplayFree, isWholeStateDue } from "../state/state-cadence.ts";
import type { StateFiles } from "../state/state-files.ts";
import { removeOldStates, writeState } from "../state/write-state.ts";
import type { Commit, CompleteGroup, TaskVisitRow } from "./ledger.ts";

export interface VersionToCommit {
  readonly version: number;
  readonly trained: Commit["trained"];
  readonly metrics: Readonly<Record<string, number>>;
  readonly troubles?: GatheredTroubles | undefined;
  /** Rollouts that were played and not trained. @default none */
  readonly leftOut?: Commit["leftOut"];
  /** What its tokens added to the gradients. @default it is not recorded */
  readonly tokens?: Commit["tokens"];
  /** Bytes that the episodes of the step take in the stream. @default 0 */
  readonly stepBytes?: number;
  /** Present if the tasks of later steps depend on them. */
  readonly visits?: readonly TaskVisitRow[];
  /** Present if the run is asynchronous. */
  readonly taken?: readonly CompleteGroup[];
}

type CommitContext = Pick<
  RunContext,
  | "run"
  | "engine"
  | "critic"
  | "learners"
  | "ledger"
  | "rollouts"
  | "folders"
  | "reporter"
  | "inbox"
  | "openGroups"
  | "logger"
  | "progress"
>;

/** Makes a version durable and publishes it. @throws {OwnershipLostError} when this owner's epoch is over. */
export async function commitVersion(
  context: CommitContext,
  {
    version,
    trained,
    metrics,
    troubles,
    leftOut = [],
    tokens = [],
    stepBytes = 0,
    visits,
    taken,
  }: VersionToCommit,
): Promise<{ commitMs: number; publishMs: number }> {
  const { run, engine, folders, inbox, reporter, progress } = context;
  const began = performance.now();
  reporter.phase(RunPhase.commit, version);
  const isWhole =
    isWholeStateDue(run.config, { stateBytes: stateBytesOf(context) }, version) ||
    (await isWholeStateWanted(context, version, stepBytes + evaluationBytes(context, version, stepBytes)));
  const stateFolder = folders.state(version, run.epoch);
  const writeCritic = isWhole ? criticWriter(context, version) : undefined;
  const { digest, files } = await writeState(context, stateFolder, {
    isWhole,
    writeLearners: learnersWriter(context.learners, version, isWhole),
    writeCritic,
  }); // 1
  const commit: Commit = {
    runId: run.runId,
    epoch: run.epoch,
    version,
    isFirst: version === startVersion(run.config),
    stateFolder,
    stateDigest: digest,
    stateFiles: files,
    isWhole,
    arithmetic: engine.arithmetic,
    trained,
    leftOut,
    identity: await identityOf(context),
    weightsBefore: progress.weightsDigest,
    tokens,
    metrics,
    troubles,
    ...(visits !== undefined && { visits }),
    ...(taken !== undefined && { taken }),
    nextSequence: isWhole || version >= run.config.trainer.steps ? inbox.neededFrom : progress.neededFrom,
  };
  await reporter.untilAvailable({ text: "the database (commit)", owner: WaitOwner.database }, () =>
    commitOnce(context, commit),
  ); // 2
  progress.version = version;
  progress.weightsDigest = digest;
  progress.trained = version;
  context.openGroups?.take(taken ?? []);
  progress.neededFrom = commit.nextSequence;
  if (isWhole) progress.recovery = { folder: stateFolder, digest, files, version, warmUpdates: 0 };
  inbox.prune();
  const committed = performance.now();
  await publishVersion(context, { version, folder: stateFolder, digest, files }); // 3
  const published = performance.now();
  if (isWhole) await keepState(context);
  await removeOldStates(context, {
    committed: stateFolder,
    recovery: isReplayFree(run.config, progress.recovery, version) ? undefined : progress.recovery?.folder,
    oldestVersion: version - 1,
    epoch: run.epoch,
  });
  return { commitMs: committed - began, publishMs: published - committed };
}

/** A committed version, and where its state is. */
interface PlacedVersion {
  readonly version: number;
  /** Relative to the state folder. */
  readonly folder: string;
  readonly digest: string;
  readonly files: StateFiles;
}

/** Publishes a committed version, so that replicas load it, with the versions of the run's further policies. */
export async function publishVersion(
  context: Pick<RunContext, "run" | "folders" | "reporter">,
  { version, folder, digest, files }: PlacedVersion,
): Promise<void> {
  const { run, reporter } = context;
  const attributes = { [Attr.runId]: run.runId, [Attr.policyVersion]: version };
  await withSpan(SpanName.stepPublish, { attributes }, async () => {
    const earlier = await keepEarlier(context, version, { folder, files });
    const policies = [...servedLearners(run, version, { folder, files }), ...earlier];
    await reporter.publish({
      version,
      location: folder,
      digest,
      oldestVersion: version,
      policies,
      publishedIn: recordedTraceparent(),
    });
  });
}

/** The approximate size of a whole state. */
function stateBytesOf({
  engine,
  critic,
  learners,
}: Pick<CommitContext, "engine" | "critic" | "learners">): number {
  const ofLearners = learners.reduce((sum, learner) => sum + learner.engine.stateBytes, 0);
  return engine.stateBytes + (critic?.stateBytes ?? 0) + ofLearners;
}

/** Bytes that the version's evaluation, before the next step, will take. @param stepBytes the estimate for the first evaluation. */
function evaluationBytes(
  { run, progress }: Pick<CommitContext, "run" | "progress">,
  version: number,
  stepBytes: number,
): number {
  return isEvaluationDue(run.config, version) ? (progress.evaluationBytes ?? stepBytes) : 0;
}

/** Commits, or finds that an earlier try whose answer was lost has committed already (C3). */
async function commitOnce(
  { run, ledger }: Pick<CommitContext, "run" | "ledger">,
  commit: Commit,
): Promise<void> {
  if (await ledger.commit(commit)) return;
  const row = await ledger.load(run.runId);
  if (row?.version === commit.version && row.stateFolder === commit.stateFolder) return;
  throw new OwnershipLostError(run.runId, run.epoch);
}
