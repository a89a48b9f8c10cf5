/**
 * Takes finished episodes, publishes them with their scores, and only then acknowledges them.
 *
 * C1: an episode is acknowledged after its scored episode is stored; until then it is delivered again.
 * C2: the scored episode of one attempt is stored once: its message id is rollout id, attempt and "scored".
 * C3: episodes are independent, so many are in work at once and their order does not matter.
 * C4: an episode during which several processes died one after the other is published as infra_failed.
 * C5: an episode's judges are always those of its run (run-panels.ts). If its run stays unknown, it is published as infra_failed.
 * C6: a scored episode points to the finished one instead of holding it, so that its tokens are stored once.
 * C7: an episode that waits for rewards is acknowledged once that is stored, and scored when they came (rewards/).
 */

import { create } from "@bufbuild/protobuf";
import { describeError, messageIdOf, Outcome, rolloutIdOf, slotKey, TerminalError } from "@hone/core";
import {
  type Bus,
  consumeWork,
  DurableName,
  lastKeyOf,
  outcomeFromWire,
  outcomeToWire,
  processAttributes,
  publishStored,
  StreamName,
  slotFromWire,
  subjects,
  UndecodableMessageError,
  type WorkConsumer,
  type WorkItem,
} from "@hone/messaging";
import {
  type Episode,
  EpisodeSchema,
  type ScoredEpisode,
  ScoredEpisodeSchema,
} from "@hone/proto-gen/rollout";
import { readFinishReason } from "@hone/rl";
import {
  Attr,
  type Context,
  contextOf,
  EventName,
  histogramOf,
  Instrument,
  type Logger,
  type Span,
  SpanKind,
  SpanName,
  withSpan,
} from "@hone/telemetry";
import { UnknownRunError } from "../errors.ts";
import { judgeFirst } from "./judge-episode.ts";
import { isKept, keepEpisode } from "./rewards/keep-episode.ts";
import type { OpenRollouts } from "./rewards/open-rollouts.ts";
import type { RunPanels } from "./run-panels.ts";

const judgeSeconds = histogramOf(Instrument.judgeSeconds);
/** Deliveries, a second apart, during which an unknown run is waited for. A run's state comes within milliseconds of its first episode. */
const PATIENT_DELIVERIES = 5;
/** The subject of finished episodes of any run. */
const ANY_EPISODE = subjects.rolloutFinished("*");

/** Options of {@link consumeEpisodes}. */
export interface ConsumeEpisodesOptions {
  readonly logger: Logger;
  /** Episodes in work at once. */
  readonly concurrency: number;
  readonly rollouts: OpenRollouts;
  /** Aborts when the judges' results are not needed any more. */
  readonly signal: AbortSignal;
}

/** Starts to judge. */
export function consumeEpisodes(bus: Bus, panels: RunPanels, options: ConsumeEpisodesOptions): WorkConsumer {
  const { logger, concurrency } = options;
  return consumeWork(bus, EpisodeSchema, {
    stream: StreamName.episodes,
    durable: DurableName.finishedEpisodes,
    filter: ANY_EPISODE,
    concurrency,
    handle: (item) => judgeItem(bus, panels, item, options),
    putAside: (item, deaths) => giveUp(bus, item, deaths, logger),
    onError: (error, { subject, sequence }) =>
      logger.error("an episode could not be judged", { subject, sequence, error }),
  });
}

async function judgeItem(
  bus: Bus,
  panels: RunPanels,
  item: WorkItem<Episode>,
  { logger, rollouts, signal }: ConsumeEpisodesOptions,
): Promise<void> {
  const episode = item.message;
  const identity = identityOf(episode, item.subject);
  if (await isKept(panels, rollouts, item)) return; // C7
  await withSpan(
    SpanName.judge,
    { parent: item.trace, kind: SpanKind.CONSUMER, attributes: identity.attributes },
    async (span) => {
      const startedAt = performance.now();
      const judged = await judgeFirst(episode, { signal }, () => panelOf(panels, item));
      // A judgement that was cut off is not used, and the episode is delivered again (C1).
      signal.throwIfAborted();
      judgeSeconds.of({ outcome: outcomeFromWire(episode.outcome) }).observeSince(startedAt);
      const trace = contextOf(span, item.trace);
      const scored = "kind" in judged ? await keepEpisode(judged, panels, rollouts, item, trace) : judged;
      if (scored === undefined) return; // C7
      describeOn(span, scored);
      if (scored.episode !== undefined && scored.episode.outcome !== episode.outcome) {
        logger.warn("an episode was left out as its judge failed", {
          rollout: identity.rolloutId,
          reason: scored.episode.reason,
        });
      }
      await publishScored(bus, identity.rolloutId, item, scored, trace);
    },
  );
}

/** C5 */
async function panelOf(panels: RunPanels, { message: { runId, task }, deliveries }: WorkItem<Episode>) {
  try {
    return await panels.ofRun(runId, task?.part ?? "");
  } catch (error) {
    const isPatient = !(error instanceof UnknownRunError) || deliveries < PATIENT_DELIVERIES;
    throw isPatient ? error : new TerminalError(error.code, error.message);
  }
}

/** C4 */
async function giveUp(bus: Bus, item: WorkItem<Episode>, deaths: number, logger: Logger): Promise<void> {
  const episode = item.message;
  const { rolloutId } = identityOf(episode, item.subject);
  const reason = `${deaths} processes died one after the other while they judged this episode`;
  logger.error("an episode was given up", { rollout: rolloutId, reason });
  const scored = create(ScoredEpisodeSchema, {
    episode: { ...episode, outcome: outcomeToWire(Outcome.infraFailed), reason },
  });
  await publishScored(bus, rolloutId, item, scored, item.trace);
}

/** C6 */
async function publishScored(
  bus: Bus,
  rolloutId: string,
  { message: { runId, slot, attempt, resumption, outcome }, sequence }: WorkItem<Episode>,
  { episode, reward, scores }: ScoredEpisode,
  trace: Context,
): Promise<void> {
  const pointer = create(ScoredEpisodeSchema, {
    reward,
    scores,
    finished: { position: BigInt(sequence), runId, ...(slot && { slot }), attempt, resumption },
    ...(episode !== undefined &&
      episode.outcome !== outcome && { outcome: episode.outcome, reason: episode.reason }),
  });
  await publishStored(bus, subjects.rolloutScored(runId), ScoredEpisodeSchema, pointer, {
    messageId: messageIdOf(`${rolloutId}/${attempt}/scored`, resumption), // C2
    trace,
  });
}

/** @throws {UndecodableMessageError} when the episode does not name its rollout, or no judge can read it, so that nobody could use it. */
function identityOf(episode: Episode, subject: string) {
  try {
    for (const { finishReason } of episode.turns) readFinishReason(finishReason);
    const slot = slotFromWire(episode.slot);
    const rolloutId = rolloutIdOf(episode.runId, slot);
    if (episode.runId !== lastKeyOf(subject)) {
      throw new TerminalError(
        "OTHER_RUN",
        `it is of the run "${episode.runId.slice(0, 80)}", but its subject names another`,
      );
    }
    // Builds the subject to check the run id.
    subjects.rolloutScored(episode.runId);
    return {
      rolloutId,
      attributes: {
        ...processAttributes({ subject, template: ANY_EPISODE, durable: DurableName.finishedEpisodes }),
        [Attr.runId]: episode.runId,
        [Attr.slot]: slotKey(slot),
        [Attr.rolloutId]: rolloutId,
        [Attr.attempt]: episode.attempt,
        [Attr.outcome]: outcomeFromWire(episode.outcome),
      },
    };
  } catch (error) {
    if (!(error instanceof TerminalError)) throw error;
    throw new UndecodableMessageError(
      subject,
      `it is not the episode of a rollout (${describeError(error)})`,
      {
        cause: error,
      },
    );
  }
}

function describeOn(span: Span, scored: ScoredEpisode): void {
  if (!span.isRecording()) return;
  span.setAttribute(Attr.reward, scored.reward);
  for (const { judge, value } of scored.scores) {
    span.addEvent(EventName.evaluationResult, {
      [Attr.genAiEvaluationName]: judge,
      [Attr.genAiEvaluationScore]: value,
    });
  }
}
