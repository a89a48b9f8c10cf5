/** Makes the engine that the configuration names, with everything that depends on its kind. */

import type { ConfigProblem, RunConfig } from "@hone/config";
import type { ModelConfig, ModelSpec } from "@hone/nn";
import { notReady, READY, type Readiness } from "@hone/service-kit";
import type { Logger } from "@hone/telemetry";
import type { EngineConfig, InferenceGatewayConfig } from "./config.ts";
import type { InferenceEngine } from "./domain/inference-engine.ts";
import { contextTokensIn } from "./embedded/cache/kv-rows.ts";
import { checkRun } from "./embedded/check-run.ts";
import { EmbeddedEngine } from "./embedded/embedded-engine.ts";
import { checkServerRun } from "./remote/check-server-run.ts";
import type { EngineServer } from "./remote/engine-server.ts";
import { type ServerChange, ServerEngine } from "./remote/server-engine.ts";
import { SglangServer } from "./remote/sglang/sglang-server.ts";
import { VllmServer } from "./remote/vllm/vllm-server.ts";

export interface ChosenEngine {
  readonly engine: InferenceEngine;
  /** Whether it has one model at a time. Such a replica claims one run; others serve all runs. */
  readonly isSingleModel: boolean;
  readiness(): Readiness;
  /** What the engine cannot do of a run; undefined while that is not known, as its server has not answered yet. */
  checkRun(run: RunConfig, model: ModelConfig | undefined): ConfigProblem[] | undefined;
  /** Longest prompt and answer together of a model. */
  contextTokens(spec: ModelSpec): number;
}

export interface ChooseEngineOptions {
  readonly config: InferenceGatewayConfig;
  readonly logger: Logger;
  /** Called once, when an engine within this process has failed. */
  readonly onFailure: (error: Error) => void;
  /** Called when the models that are loaded have changed without a call. */
  readonly onChange: () => void;
}

export function chooseEngine(options: ChooseEngineOptions): ChosenEngine {
  const { engine } = options.config;
  return engine.kind === "onnx" ? embeddedEngine(options) : serverEngine(engine, options);
}

function embeddedEngine({ config, onFailure }: ChooseEngineOptions): ChosenEngine {
  const { maxSequences, maxWaiting, maxCacheBytes, maxStepMs, intraOpThreads, weights } = config;
  return {
    engine: new EmbeddedEngine({
      maxSequences,
      maxWaiting,
      maxCacheBytes,
      maxStepMs,
      intraOpThreads,
      weights,
      onFailure,
    }),
    isSingleModel: false,
    readiness: () => READY,
    checkRun: (run, model) => checkRun(run, model, maxCacheBytes),
    contextTokens: (spec) => Math.min(spec.maxPositions, contextTokensIn(spec, maxCacheBytes)),
  };
}

function serverEngine(
  settings: Exclude<EngineConfig, { kind: "onnx" }>,
  { config, logger, onChange }: ChooseEngineOptions,
): ChosenEngine {
  const { maxSequences, maxWaiting } = config;
  const server: EngineServer =
    settings.kind === "vllm" ? new VllmServer(settings) : new SglangServer(settings);
  const onServerChange = (change: ServerChange) => {
    logServerChange(logger, server.name, change);
    onChange();
  };
  const { viewFolder } = settings;
  const engine = new ServerEngine({ server, maxSequences, maxWaiting, viewFolder, onChange: onServerChange });
  return {
    engine,
    isSingleModel: true,
    readiness: () => (engine.state.kind === "ready" ? READY : notReady(engine.state.reason)),
    checkRun: (run, model) => engine.facts && checkServerRun(run, model, engine.facts, server.bounds),
    contextTokens: (spec) => Math.min(spec.maxPositions, engine.facts?.maxContextTokens ?? spec.maxPositions),
  };
}

function logServerChange(logger: Logger, server: string, change: ServerChange): void {
  switch (change.kind) {
    case "ready": {
      const { name, scoring, maxContextTokens, takesAdapters, startModel } = change.facts;
      logger.info("the inference server is ready", {
        server,
        is: name,
        model: startModel,
        scoring,
        maxContextTokens,
        takesAdapters,
      });
      return;
    }
    case "away":
      logger.warn("the inference server does not answer", { server, reason: change.reason });
      return;
    case "restored": {
      const { model, version } = change.source;
      logger.info("the inference server has its weights again", { server, model, version });
      return;
    }
    case "not restored": {
      const { model, version } = change.source;
      logger.warn("the inference server has not taken its weights, trying again", {
        server,
        model,
        version,
        error: change.error,
      });
      return;
    }
    default:
      change satisfies never;
  }
}
