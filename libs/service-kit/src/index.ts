/**
 * What makes six services alike: environment, start, health, drain, end.
 *
 * @example
 * // main.ts
 * import { runService } from "@hone/service-kit";
 * import { judgeService } from "./service.ts";
 *
 * await runService(judgeService);
 */

export type { ApiRequestErrorDetails, ApiRequestStatus } from "./api-request.ts";
export { ApiRequestError, bearerToken, parseBody } from "./api-request.ts";
export type { BaseConfig, Environment } from "./environment.ts";
export { addressIn, EnvironmentVariable, readBaseConfig, readEpisodesMaxBytes } from "./environment.ts";
export { ListenError, SettingError, StoppingError } from "./errors.ts";
export type { EventStreamOptions, ServerSentEvent } from "./event-stream.ts";
export { answerWithEvents } from "./event-stream.ts";
export type { HttpErrorBody } from "./http-app.ts";
export { createHttpApp, errorBody } from "./http-app.ts";
export type { HttpServer, HttpServerOptions } from "./http-server.ts";
export { startHttpServer } from "./http-server.ts";
export type { SandboxPart } from "./measured-sandbox.ts";
export { MeasuredSandbox } from "./measured-sandbox.ts";
export type { ProcessMemory } from "./process-memory.ts";
export { processMemory } from "./process-memory.ts";
export type { Readiness, ReadinessReport } from "./readiness.ts";
export { notReady, READY } from "./readiness.ts";
export type { ReadyFileContent } from "./ready-file.ts";
export type { ProcessHost, RunServiceOptions } from "./run-service.ts";
export { ExitCode, runService } from "./run-service.ts";
export { readSecretSetting } from "./secret-setting.ts";
export type {
  DatabaseNeeds,
  HttpAddress,
  HttpHandler,
  Service,
  ServiceContext,
  ServiceDefinition,
} from "./service.ts";
export type { StopReport } from "./stages.ts";
export type { BesideService, StartBesideOptions } from "./start-beside.ts";
export { startBeside } from "./start-beside.ts";
export type { RunningService, StartServiceOptions, StopOptions } from "./start-service.ts";
export { DEFAULT_GRACE_MS, startService } from "./start-service.ts";
