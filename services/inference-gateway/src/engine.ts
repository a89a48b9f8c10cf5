/** The engine without a bus: what the command line generates with, and checks a run file's model with. */

export { readInferenceGatewayConfig } from "./config.ts";
export { EngineFailedError, InvalidRequestError } from "./domain/errors.ts";
export { FinishReason, type InferenceEngine, type PolicySource } from "./domain/inference-engine.ts";
export { checkRun as checkEmbeddedRun } from "./embedded/check-run.ts";
export { EmbeddedEngine } from "./embedded/embedded-engine.ts";
export { answerValidate } from "./nats/answer-validate.ts";
