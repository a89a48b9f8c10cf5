/** The engine's errors. A terminal one means that the same request cannot succeed, a retryable one that it may, later or elsewhere. */

import { InvalidInputError, RetryableError, TerminalError } from "@hone/core";
import type { VersionRange } from "./inference-engine.ts";

/** The request breaks a rule of the port. The rule begins with "must". */
export class InvalidRequestError extends InvalidInputError {
  readonly value: unknown;

  constructor(path: string, value: unknown, rule: string) {
    super(`${path} is ${JSON.stringify(value)}; it ${rule}`, { path, allowed: rule });
    this.value = value;
  }
}

/** The queue is full: another replica may have room. */
export class EngineBusyError extends RetryableError {
  readonly waiting: number;

  constructor(waiting: number) {
    super("ENGINE_BUSY", `The engine's queue is full: ${waiting} generations wait already`);
    this.waiting = waiting;
  }
}

/** The version asked for is not loaded here yet. */
export class VersionBehindError extends RetryableError {
  readonly model: string;
  readonly range: VersionRange;
  readonly newest: number | undefined;

  constructor(model: string, range: VersionRange, newest: number | undefined) {
    super(
      "VERSION_BEHIND",
      `Version ${range.lowest} or newer of ${model} is not loaded here yet; ${newest === undefined ? "no version is" : `the newest is version ${newest}`}`,
    );
    this.model = model;
    this.range = range;
    this.newest = newest;
  }
}

/** The versions asked for are older than what is loaded, and do not come back. */
export class VersionStaleError extends TerminalError {
  readonly model: string;
  readonly range: VersionRange;
  readonly newest: number;

  constructor(model: string, range: VersionRange, newest: number) {
    super(
      "VERSION_STALE",
      `Version ${range.highest} or older of ${model} is not loaded any more; version ${newest} has replaced it`,
    );
    this.model = model;
    this.range = range;
    this.newest = newest;
  }
}

/** A folder holds no model that this engine can serve, or another one than was announced. */
export class PolicyLoadError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("POLICY_LOAD", message, options);
  }
}

/** The engine failed or is closed. Another replica, or this one after its restart, may answer. */
export class EngineFailedError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("ENGINE_FAILED", message, options);
  }
}

/** No model of this name is served here. */
export class UnknownModelError extends TerminalError {
  readonly model: string;

  constructor(model: string, served: readonly string[]) {
    const allowed = served.length === 0 ? "no model is" : `it must be one of: ${served.join(", ")}`;
    super("MODEL_NOT_FOUND", `The model ${model} is not served here; ${allowed}`);
    this.model = model;
  }
}

/** The model is being fetched or loaded. */
export class ModelLoadingError extends RetryableError {
  readonly model: string;

  constructor(model: string, progress: string) {
    super("MODEL_LOADING", `${model} is not loaded yet: ${progress}`);
    this.model = model;
  }
}

/** The model that the operator asked for cannot be served; the cause says why. */
export class ModelFailedError extends TerminalError {
  readonly model: string;

  constructor(model: string, options: ErrorOptions) {
    super("MODEL_FAILED", `${model} cannot be loaded`, options);
    this.model = model;
  }
}

/** The place of a checkpoint is neither a folder nor an id of the hub. */
export class CheckpointPlaceError extends TerminalError {
  constructor(place: string) {
    super(
      "CHECKPOINT_PLACE",
      `The checkpoint ${place} cannot be served; its place must be a folder, or an id of the hub such as owner/name`,
    );
  }
}

/** The inference server cannot be reached or broke an answer off, as it starts, restarts or has failed. */
export class ServerGoneError extends RetryableError {
  constructor(server: string, reason: string, options?: ErrorOptions) {
    super("SERVER_GONE", `${server} does not answer: ${reason}`, options);
  }
}

/** The inference server runs, but is too busy with a long step of its engine to say which weights it holds. */
export class ServerBusyError extends RetryableError {
  constructor(server: string, options?: ErrorOptions) {
    super(
      "SERVER_BUSY",
      `${server} did not say in time which weights it holds, as its engine is in a long step`,
      options,
    );
  }
}

/** The inference server refused a call. */
export class ServerRefusedError extends TerminalError {
  readonly status: number;

  constructor(server: string, action: string, status: number, answer: string) {
    super("SERVER_REFUSED", `Cannot ${action}: ${server} answered with status ${status}: ${answer}`);
    this.status = status;
  }
}

/** The inference server was started without something that Hone needs, and must be started differently. */
export class ServerUnfitError extends TerminalError {
  constructor(server: string, rule: string, found: string) {
    super("SERVER_UNFIT", `${server} cannot be used: it must ${rule}, but is ${found}`);
  }
}
