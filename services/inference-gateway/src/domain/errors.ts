/** What the engine refuses and how it fails. Terminal: the same request cannot succeed. Retryable: it may, later or elsewhere. */

import { InvalidInputError, RetryableError, TerminalError } from "@hone/core";
import type { VersionRange } from "./inference-engine.ts";

/** The request breaks a rule of the port. */
export class InvalidRequestError extends InvalidInputError {
  readonly value: unknown;

  constructor(path: string, value: unknown, rule: string) {
    super(`Cannot generate as ${path} ${rule}: current value is ${JSON.stringify(value)}`, {
      path,
      allowed: rule,
    });
    this.value = value;
  }
}

/** The queue is full: another replica may have room. */
export class EngineBusyError extends RetryableError {
  readonly waiting: number;

  constructor(waiting: number) {
    super(
      "ENGINE_BUSY",
      `Cannot queue a generation as the queue is full: current value is ${waiting} waiting`,
    );
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
      `Cannot generate with ${model} as version ${range.lowest} or newer is asked for: current value is ${newest ?? "none"}`,
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
      `Cannot generate with ${model} as version ${range.highest} or older is asked for: current value is ${newest}`,
    );
    this.model = model;
    this.range = range;
    this.newest = newest;
  }
}

/** A folder is no model that this engine can serve, or not the one that was announced. */
export class PolicyLoadError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("POLICY_LOAD", message, options);
  }
}

/** The engine broke or is closed: another replica, or this one after its restart, may serve. */
export class EngineFailedError extends RetryableError {
  constructor(message: string, options?: ErrorOptions) {
    super("ENGINE_FAILED", message, options);
  }
}

/** No model of this name is served here. */
export class UnknownModelError extends TerminalError {
  readonly model: string;

  constructor(model: string, served: readonly string[]) {
    const names = served.length === 0 ? "none" : served.join(", ");
    super(
      "MODEL_NOT_FOUND",
      `Cannot answer as the model must be one of (${names}): current value is ${model}`,
    );
    this.model = model;
  }
}

/** The model is on its way: fetched, or loaded. */
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
    super("MODEL_FAILED", `Cannot serve ${model} as it must load: current value is failed`, options);
    this.model = model;
  }
}

/** Neither a folder nor an id of the hub. */
export class CheckpointPlaceError extends TerminalError {
  constructor(place: string) {
    super(
      "CHECKPOINT_PLACE",
      `Cannot serve a checkpoint as its place must be a folder, or an id of the hub such as owner/name: current value is ${place}`,
    );
  }
}

/** The inference server cannot be reached, or broke off: it starts, restarts or is dead. */
export class ServerGoneError extends RetryableError {
  constructor(server: string, reason: string, options?: ErrorOptions) {
    super("SERVER_GONE", `Cannot reach ${server} as it must answer: current value is ${reason}`, options);
  }
}

/** The inference server lives and is too busy to say what weights it holds: its engine is in a long step. */
export class ServerBusyError extends RetryableError {
  constructor(server: string, options?: ErrorOptions) {
    super(
      "SERVER_BUSY",
      `Cannot tell what ${server} holds as its engine must answer between two steps: current value is silence`,
      options,
    );
  }
}

/** The inference server answered that it will not do this. */
export class ServerRefusedError extends TerminalError {
  readonly status: number;

  constructor(server: string, action: string, status: number, answer: string) {
    super(
      "SERVER_REFUSED",
      `Cannot ${action} as ${server} must accept it: current value is ${status}, ${answer}`,
    );
    this.status = status;
  }
}

/** The inference server runs without something that a run needs: it must be started differently. */
export class ServerUnfitError extends TerminalError {
  constructor(server: string, rule: string, found: string) {
    super("SERVER_UNFIT", `Cannot use ${server} as it must ${rule}: current value is ${found}`);
  }
}
