/**
 * The inference gateway: one engine replica. The embedded engine serves the policies of all active runs and the checkpoints
 * that the operator names; with an inference server beside it the gateway serves the run that this replica claims.
 *
 * Drain: the replica's entries are removed, so that callers use other replicas. Generations that run may end; when the time for
 * that is over, they are cut off and answered as unavailable.
 */

import { respond, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { processMemory, type Service, type ServiceContext, type ServiceDefinition } from "@hone/service-kit";
import { histogramOf, Instrument, type Logger, observeMetric } from "@hone/telemetry";
import { chooseEngine } from "./choose-engine.ts";
import { type InferenceGatewayConfig, readInferenceGatewayConfig } from "./config.ts";
import { timeEngine } from "./domain/busy-clock.ts";
import { type PolicyChange, PolicyKeeper } from "./domain/policy-keeper.ts";
import { OpenCompletions } from "./domain/serving/open-completions.ts";
import { ServedCheckpoints } from "./domain/serving/served-checkpoints.ts";
import { ServedModels } from "./domain/serving/served-models.ts";
import { findCheckpoints } from "./find-checkpoints.ts";
import { createApp } from "./http/app.ts";
import { answerValidate } from "./nats/answer-validate.ts";
import { claimRun } from "./nats/claim-run.ts";
import { followRuns } from "./nats/follow-runs.ts";
import { type ReplicaReporter, reportReplica } from "./nats/report-replica.ts";
import { serveGenerate } from "./nats/serve-generate.ts";

const loadSeconds = histogramOf(Instrument.policyLoadSeconds);
/** Shorter stages of a load are logged at the level debug. */
const LONG_STAGE_MS = 500;
const MIB = 2 ** 20;
/** In this queue group one replica answers each check of a run. */
const QUEUE_GROUP = "inference-gateway";

export const inferenceGatewayService: ServiceDefinition<InferenceGatewayConfig> = {
  name: "inference-gateway",
  readConfig: readInferenceGatewayConfig,
  start,
};

async function start(context: ServiceContext<InferenceGatewayConfig>): Promise<Service> {
  const { bus, config, logger, fail } = context;
  const { instanceId: replica, stateDir } = config;
  let reporter: ReplicaReporter | undefined;
  const chosen = chooseEngine({ config, logger, onFailure: fail, onChange: () => reporter?.report() });
  const { engine, busyTime } = timeEngine(chosen.engine);
  const keeper = new PolicyKeeper({
    engine,
    onChange: (change) => {
      logChange(logger, change);
      checkpoints.note(change);
      if (change.kind !== "progress") reporter?.report();
    },
  });
  const checkpoints = new ServedCheckpoints({
    wanted: config.checkpoints,
    quantization: config.servedQuantization,
    find: findCheckpoints(config.hub, config.modelFolders),
    keeper,
    onTrouble: (id, error) => logger.warn("a checkpoint is not served yet", { checkpoint: id, error }),
  });
  const models = new ServedModels({ keeper, checkpoints, contextTokens: chosen.contextTokens });
  const open = new OpenCompletions();
  const { heartbeatMs, versionWaitMs, reportMs } = config;
  reporter = await reportReplica({ bus, engine, busyTime, keeper, replica, everyMs: reportMs, logger });
  const generates = serveGenerate({ bus, engine, keeper, replica, heartbeatMs, versionWaitMs, logger });
  const validator = respond(
    bus,
    subjects.validate(ValidatingService.inferenceGateway),
    ValidateRequestSchema,
    ValidateReplySchema,
    {
      queue: QUEUE_GROUP,
      async handle({ message, reply }) {
        const answer = answerValidate(message, chosen.checkRun);
        if (answer !== undefined) await reply(answer);
        else logger.info("a run is not checked yet, as the inference server has not answered yet");
      },
      onError: (error, subject) => logger.error("a request failed", { subject, error }),
    },
  );
  const observers = [
    observeMetric(Instrument.engineRunning, () => [{ labels: {}, value: engine.capacity().running }]),
    observeMetric(Instrument.engineWaiting, () => [{ labels: {}, value: engine.capacity().waiting }]),
    observeMetric(Instrument.engineBusySeconds, () => [{ labels: {}, value: busyTime().busyMs / 1_000 }]),
  ];
  const following = new AbortController();
  const follow = { bus, keeper, stateDir, logger, replica };
  const followed = chosen.isSingleModel
    ? claimRun(follow, following.signal)
    : followRuns(follow, following.signal);
  followed.catch(fail);
  const serving = checkpoints.start(following.signal);
  return {
    routes: createApp({
      engine,
      models,
      open,
      replica,
      apiKey: config.apiKey,
      server: config.engine.kind === "onnx" ? undefined : config.engine,
      logger,
    }),
    readiness: chosen.readiness,
    async drain(signal) {
      following.abort();
      await reporter?.withdraw();
      await Promise.all([generates.drain(signal), open.drain(signal), validator.drain()]);
    },
    async close() {
      following.abort();
      for (const observer of observers) observer[Symbol.dispose]();
      await keeper.close();
      await engine.close();
      await Promise.all([followed, serving]);
    },
  };
}

function logChange(logger: Logger, change: PolicyChange): void {
  switch (change.kind) {
    case "loading":
      return;
    case "progress": {
      const { stage, tookMs, detail } = change.progress;
      const { residentBytes, peakBytes } = processMemory();
      // Small models load a version every few seconds.
      const level = tookMs < LONG_STAGE_MS ? "debug" : "info";
      logger[level]("a policy is being loaded", {
        model: change.source.model,
        version: change.source.version,
        stage,
        ...(detail !== undefined && { detail }),
        tookMs: Math.round(tookMs),
        residentMib: Math.round(residentBytes / MIB),
        peakMib: Math.round(peakBytes / MIB),
      });
      return;
    }
    case "loaded":
      loadSeconds.of({ result: "ok" }).observe(change.tookMs / 1_000);
      logger.info("policy loaded", {
        model: change.source.model,
        version: change.source.version,
        tookMs: Math.round(change.tookMs),
      });
      return;
    case "failed":
      loadSeconds.of({ result: "failed" }).observe(change.tookMs / 1_000);
      logger.warn("policy not loaded, trying again", {
        model: change.source.model,
        version: change.source.version,
        error: change.error,
      });
      return;
    case "unloaded":
      logger.info("policy unloaded", { model: change.model });
      return;
    default:
      change satisfies never;
  }
}
