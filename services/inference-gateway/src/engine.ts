/** The engine without a bus, with which the command line generates and checks the model of a run file. */

export { readInferenceGatewayConfig } from "./config.ts";
export { EngineFailedError, InvalidRequestError } from "./domain/errors.ts";
export type { InferenceEngine, PolicySource } from "./domain/inference-engine.ts";
export { checkRun as checkEmbeddedRun } from "./embedded/check-run.ts";
export { EmbeddedEngine } from "./embedded/embedded-engine.ts";
export { answerValidate } from "./nats/answer-validate.ts";
