/**
 * What makes six services alike: environment, start, health, drain, end.
 *
 * @example
 * // main.ts
 * import { runService } from "@hone/service-kit";
 * import { judgeService } from "./lifecycle/service.ts";
 *
 * await runService(judgeService);
 */

export type { SandboxPart } from "./beside/measured-sandbox.ts";
export { MeasuredSandbox } from "./beside/measured-sandbox.ts";
export type { ProcessMemory } from "./beside/process-memory.ts";
export { processMemory } from "./beside/process-memory.ts";
export { ListenError, SettingError, StoppingError } from "./errors.ts";
export type { ApiRequestErrorDetails, ApiRequestStatus } from "./http/api-request.ts";
export { ApiRequestError, bearerToken, parseBody } from "./http/api-request.ts";
export type { EventStreamOptions, ServerSentEvent } from "./http/event-stream.ts";
export { answerWithEvents } from "./http/event-stream.ts";
export type { HttpErrorBody } from "./http/http-app.ts";
export { createHttpApp, errorBody } from "./http/http-app.ts";
export type { HttpServer, HttpServerOptions } from "./http/http-server.ts";
export { startHttpServer } from "./http/http-server.ts";
export type { Readiness, ReadinessReport } from "./lifecycle/readiness.ts";
export { notReady, READY } from "./lifecycle/readiness.ts";
export type { ReadyFileContent } from "./lifecycle/ready-file.ts";
export type { ProcessHost, RunServiceOptions } from "./lifecycle/run-service.ts";
export { ExitCode, runService } from "./lifecycle/run-service.ts";
export type {
  DatabaseNeeds,
  HttpAddress,
  HttpHandler,
  Service,
  ServiceContext,
  ServiceDefinition,
} from "./lifecycle/service.ts";
export type { StopReport } from "./lifecycle/stages.ts";
export type { InProcessService, StartInProcessOptions } from "./lifecycle/start-in-process.ts";
export { startInProcess } from "./lifecycle/start-in-process.ts";
export type { RunningService, StartServiceOptions, StopOptions } from "./lifecycle/start-service.ts";
export { DEFAULT_GRACE_MS, startService } from "./lifecycle/start-service.ts";
export type { BaseConfig, Environment } from "./settings/environment.ts";
export {
  addressIn,
  EnvironmentVariable,
  readBaseConfig,
} from "./settings/environment.ts";
export { readSecretSetting } from "./settings/secret-setting.ts";
