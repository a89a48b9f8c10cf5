/**
 * Writes runs to MLflow: each is a run of one experiment, with its settings as parameters, its figures as metrics, its run file and,
 * where the operator wants it, its last checkpoint as artefacts.
 *
 * M1: the run is found by its tag `hone.run`, so a restart goes on with it, and a name is never made twice.
 * M2: the tags `hone.train` and `hone.val.<mode>` say up to which step its series are written. They are written with the
 *     metrics, behind them, so an event that comes again is left out. Between the two, what is written again has the same step and
 *     time, which MLflow's databases keep once.
 * M3: the sink gets its events in the order of the stream, one at a time (durables.ts).
 * M4: a bus that lost its data gives the ids of runs again. The time of a run's acceptance tells such runs apart: steps belong to
 *     the run of their id that began last.
 */

import type { EventSink } from "../../domain/event-sink.ts";
import type { RunFact } from "../../domain/run-event.ts";
import type { RunPhase } from "../../domain/run-phase.ts";
import { flatConfig } from "../flat-config.ts";
import { type MetricPoints, pointsOf } from "../metric-points.ts";
import type { MlflowClient, MlflowRun, MlflowStatus } from "./mlflow-client.ts";
import type { CheckpointUpload } from "./upload-checkpoint.ts";

export interface MlflowSinkOptions {
  readonly client: MlflowClient;
  /** Name of the experiment, which is created where it is missing. */
  readonly experiment: string;
  /** Undefined = checkpoints are not uploaded. */
  readonly uploadCheckpoint: CheckpointUpload | undefined;
}

/** A run with the last step of each of its series (M2). */
interface OpenRun {
  readonly run: MlflowRun;
  readonly lastSteps: Map<string, number>;
}

const RUN_TAG = "hone.run";
const ACCEPTED_TAG = "hone.accepted";
/** Limits of runs/log-batch. */
const MAX_METRICS = 1_000;
const MAX_PARAMS = 100;
/** Runs that are known; another one is looked up again when an event of it comes. */
const MAX_KNOWN_RUNS = 64;
/** A server that takes artefacts itself gives runs addresses of this kind; others expect clients to write to their storage. */
const PROXIED = "mlflow-artifacts:";

export function mlflowSink({ client, experiment, uploadCheckpoint }: MlflowSinkOptions): EventSink {
  const known = new Map<string, OpenRun>();

  const openRun = async (fact: RunFact): Promise<OpenRun> => {
    const { runId, timeMs } = fact;
    const before = known.get(runId);
    if (before !== undefined && fact.kind !== "accepted") return before;
    const experimentId = await client.experiment(experiment);
    const tags = [{ key: RUN_TAG, value: runId }];
    if (fact.kind === "accepted") tags.push({ key: ACCEPTED_TAG, value: String(timeMs) }); // M4
    const run =
      (await client.findRun(experimentId, tags)) ??
      (await client.createRun({ experimentId, name: runId, startTimeMs: timeMs, tags }));
    const opened = { run, lastSteps: lastStepsOf(run) };
    known.delete(runId);
    known.set(runId, opened);
    for (const oldest of known.keys()) {
      if (known.size <= MAX_KNOWN_RUNS) break;
      known.delete(oldest);
    }
    return opened;
  };

  const write = async (fact: RunFact): Promise<void> => {
    const points = pointsOf(fact);
    if (points !== undefined) return writePoints(client, await openRun(fact), points);
    if (fact.kind === "accepted") return writeConfig(client, (await openRun(fact)).run, fact.configJson);
    if (fact.kind === "resumed") return client.setStatus((await openRun(fact)).run.id, "RUNNING", undefined);
    if (fact.kind !== "ended") return;
    const { run } = await openRun(fact);
    const tags = [
      { key: "hone.reason", value: fact.reason },
      { key: "hone.checkpoint", value: fact.checkpoint },
    ].filter(({ value }) => value !== "");
    if (tags.length > 0) await client.logBatch(run.id, { tags });
    if (isProxied(run)) await uploadCheckpoint?.(client, run, fact);
    await client.setStatus(run.id, statusOf(fact.phase), fact.timeMs);
  };

  return {
    write: async (facts) => {
      for (const fact of facts) {
        try {
          await write(fact);
        } catch (error) {
          known.delete(fact.runId); // whatever it was, the run may have been deleted
          throw error;
        }
      }
    },
  };
}

/** Whether a run's artefacts can be sent to its server. */
function isProxied(run: MlflowRun): boolean {
  return run.artifactUri.startsWith(PROXIED);
}

async function writePoints(client: MlflowClient, opened: OpenRun, points: MetricPoints): Promise<void> {
  const { run, lastSteps } = opened;
  const { series, step, timeMs, values } = points;
  const tag = tagOf(series);
  if ((lastSteps.get(tag) ?? -1) >= step) return; // M2
  const metrics = values.map(([key, value]) => ({ key, value, timestamp: timeMs, step }));
  const tags = [{ key: tag, value: String(step) }];
  for (let from = 0; from === 0 || from < metrics.length; from += MAX_METRICS) {
    const isLast = from + MAX_METRICS >= metrics.length;
    await client.logBatch(run.id, {
      metrics: metrics.slice(from, from + MAX_METRICS),
      ...(isLast && { tags }),
    });
  }
  lastSteps.set(tag, step);
}

async function writeConfig(client: MlflowClient, run: MlflowRun, configJson: string): Promise<void> {
  const params = flatConfig(configJson)
    .filter(([, value]) => value !== "")
    .map(([key, value]) => ({ key: key.replaceAll(/[^\w.\-/ ]/g, "_"), value: String(value) }));
  for (let from = 0; from < params.length; from += MAX_PARAMS)
    await client.logBatch(run.id, { params: params.slice(from, from + MAX_PARAMS) });
  if (isProxied(run)) await client.putArtifact(run, "run.json", configJson);
}

/** `train` -> `hone.train`, `val/greedy` -> `hone.val.greedy`. */
function tagOf(series: string): string {
  return `hone.${series.replaceAll("/", ".")}`;
}

function lastStepsOf({ tags }: MlflowRun): Map<string, number> {
  const steps = [...tags].filter(([key]) => key === tagOf("train") || key.startsWith(tagOf("val/")));
  return new Map(steps.map(([key, value]) => [key, Number(value)]));
}

function statusOf(phase: RunPhase): MlflowStatus {
  if (phase === "completed") return "FINISHED";
  return phase === "cancelled" ? "KILLED" : "FAILED";
}
