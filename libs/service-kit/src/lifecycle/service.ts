/**
 * What the kit asks of a service, and what it gives to it.
 *
 * A definition is data: a name, how the configuration is read, how the service starts. The same definition runs as a process
 * (`runService`) and beside others in one process (`startInProcess`). It never touches `process`.
 */

import type { Bus } from "@hone/messaging";
import type { Database, Migration } from "@hone/storage";
import type { Logger } from "@hone/telemetry";
import type { BaseConfig, Environment } from "../settings/environment.ts";
import type { Readiness } from "./readiness.ts";

/** A service as data. */
export interface ServiceDefinition<Config extends BaseConfig = BaseConfig> {
  /** As in the architecture: `judge`, `agent-rollout` … */
  readonly name: string;
  /** Complete configuration from the environment. @throws {ConfigError} */
  readConfig(environment: Environment): Config;
  /** Builds the service and starts its intake. Called once, with the bus connected. */
  start(context: ServiceContext<Config>): Promise<Service>;
}

/** What a service is given. */
export interface ServiceContext<Config extends BaseConfig = BaseConfig> {
  readonly config: Config;
  /** Connected; streams and buckets exist. Closed by the kit, after `close`. */
  readonly bus: Bus;
  /** Bears the service's name and instance. */
  readonly logger: Logger;
  /** Aborts when the drain's time is over or the start is given up; its reason is a StoppingError. */
  readonly signal: AbortSignal;
  /** Where this process answers HTTP, for addresses that it hands out. */
  readonly http: HttpAddress;
  /**
   * Opens the service's own schema and brings it up to date. Its state joins the readiness, and it is closed by the
   * kit, after `close`.
   * @throws {SettingError} when there is no HONE_DATABASE_URL.
   */
  openDatabase(needs: DatabaseNeeds): Promise<Database>;
  /** Called when the service cannot go on: the process then drains what it can and ends with exit code 1. */
  fail(error: unknown): void;
}

export interface DatabaseNeeds {
  readonly schema: string;
  readonly migrations: readonly Migration[];
  readonly maxConnections?: number;
  readonly statementTimeoutMs?: number;
}

export interface HttpAddress {
  readonly host: string;
  readonly port: number;
  /** `http://host:port`, no slash at the end. */
  readonly url: string;
}

/** A running service. */
export interface Service {
  /** Its own HTTP routes, served beside /livez and /readyz; a Hono app. */
  readonly routes?: HttpHandler;
  /** Names by which clients may call them, beside those that the environment allows. */
  readonly hosts?: readonly string[];
  /** Whether it can do its work now; asked at every probe, so it must be quick. */
  readiness(): Readiness | Promise<Readiness>;
  /** Takes no new work, and waits until the work in progress ends. The signal aborts when the time for that is over. */
  drain(signal: AbortSignal): Promise<void>;
  /** Releases everything that it holds. Called after `drain`, also when that failed. */
  close(): Promise<void>;
}

/** What answers HTTP requests. Any Hono app is one. */
export interface HttpHandler {
  fetch(request: Request, env?: object): Response | Promise<Response>;
}
