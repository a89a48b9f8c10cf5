/**
 * The inference gateway: one engine replica that serves the policies of all active runs.
 *
 * Drain: the replica's entries are taken back, so that callers go elsewhere; what runs may end, and is cut off and
 * answered as unavailable when the time for that is over.
 */

import { respond, subjects, ValidatingService } from "@hone/messaging";
import { ValidateReplySchema, ValidateRequestSchema } from "@hone/proto-gen/run";
import { READY, type Service, type ServiceContext, type ServiceDefinition } from "@hone/service-kit";
import { histogramOf, Instrument, type Logger, observeMetric } from "@hone/telemetry";
import { type InferenceGatewayConfig, readInferenceGatewayConfig } from "./config.ts";
import { EmbeddedEngine } from "./domain/embedded/embedded-engine.ts";
import { type PolicyChange, PolicyKeeper } from "./domain/policy-keeper.ts";
import { answerValidate } from "./nats/answer-validate.ts";
import { followRuns } from "./nats/follow-runs.ts";
import { reportReplica } from "./nats/report-replica.ts";
import { serveGenerate } from "./nats/serve-generate.ts";

const loadSeconds = histogramOf(Instrument.policyLoadSeconds);
/** Replicas share the checks of runs by this queue group. */
const QUEUE_GROUP = "inference-gateway";

export const inferenceGatewayService: ServiceDefinition<InferenceGatewayConfig> = {
  name: "inference-gateway",
  readConfig: readInferenceGatewayConfig,
  start,
};

async function start(context: ServiceContext<InferenceGatewayConfig>): Promise<Service> {
  const { bus, config, logger, fail } = context;
  const { instanceId: replica, maxSequences, maxWaiting, maxCacheBytes, intraOpThreads, stateDir } = config;
  const engine = new EmbeddedEngine({
    maxSequences,
    maxWaiting,
    maxCacheBytes,
    intraOpThreads,
    onFailure: fail,
  });
  const keeper = new PolicyKeeper({
    engine,
    onChange: (change) => {
      logChange(logger, change);
      reporter.report();
    },
  });
  const { heartbeatMs, versionWaitMs, reportMs } = config;
  const reporter = await reportReplica({ bus, engine, keeper, replica, everyMs: reportMs, logger });
  const generates = serveGenerate({ bus, engine, keeper, replica, heartbeatMs, versionWaitMs, logger });
  const validator = respond(
    bus,
    subjects.validate(ValidatingService.inferenceGateway),
    ValidateRequestSchema,
    ValidateReplySchema,
    {
      queue: QUEUE_GROUP,
      handle: ({ message, reply }) => reply(answerValidate(message, maxCacheBytes)),
      onError: (error, subject) => logger.error("a request failed", { subject, error }),
    },
  );
  const observers = [
    observeMetric(Instrument.engineRunning, () => [{ labels: {}, value: engine.capacity().running }]),
    observeMetric(Instrument.engineWaiting, () => [{ labels: {}, value: engine.capacity().waiting }]),
  ];
  const following = new AbortController();
  const followed = followRuns({ bus, keeper, stateDir, logger }, following.signal);
  followed.catch(fail);
  return {
    readiness: () => READY,
    async drain(signal) {
      following.abort();
      await reporter.withdraw();
      await Promise.all([generates.drain(signal), validator.drain()]);
    },
    async close() {
      following.abort();
      for (const observer of observers) observer[Symbol.dispose]();
      await keeper.close();
      await engine.close();
      await followed;
    },
  };
}

function logChange(logger: Logger, change: PolicyChange): void {
  switch (change.kind) {
    case "loading":
      return;
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
