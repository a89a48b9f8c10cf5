/** Errors of this package. A failure of the executed code is a result and never an error. */

import { RetryableError, TerminalError } from "@hone/core";

/** A process of the sandbox could not be started, or none became free in time. */
export class SandboxUnavailableError extends RetryableError {
  constructor(problem: string, detail: string, options?: ErrorOptions) {
    super("SANDBOX_UNAVAILABLE", `Cannot run code: ${problem} (${detail})`, options);
  }
}

/** This machine has no runtime that can isolate a model's code. */
export class SandboxMissingError extends TerminalError {
  constructor(reason: string, options?: ErrorOptions) {
    super(
      "SANDBOX_MISSING",
      `This machine has no sandbox for a model's Python: ${reason}; Hone runs such code only on Linux with glibc on x64 or arm64, after npm ci with optional packages`,
      options,
    );
  }
}

/** A package that a run wants cannot be used: the operator's folder lacks it, or has it in another form. */
export class PackageError extends TerminalError {
  /** What can be wanted instead. */
  readonly allowed: string;

  constructor(problem: string, allowed: string, options?: ErrorOptions) {
    super("PACKAGE", problem, options);
    this.allowed = allowed;
  }
}

/** A container runtime cannot be reached, or did not do what it was asked to: no fault of the code in a container. */
export class ContainerRuntimeError extends RetryableError {
  /** @param runtime its socket. */
  constructor(runtime: string, reason: string, options?: ErrorOptions) {
    super("CONTAINER_RUNTIME", `Cannot use containers of ${runtime}: ${reason}`, options);
  }
}

/** A run wants a container that the operator does not allow. */
export class ContainerRefusedError extends TerminalError {
  /** What is refused, such as `image`. */
  readonly key: string;
  readonly allowed: string;

  constructor(key: string, value: unknown, allowed: string) {
    super(
      "CONTAINER_REFUSED",
      `A container with ${key} ${JSON.stringify(value)} is refused; it must be ${allowed}`,
    );
    this.key = key;
    this.allowed = allowed;
  }
}

/** The sandbox was closed. */
export class SandboxClosedError extends TerminalError {
  constructor() {
    super("SANDBOX_CLOSED", "Cannot run code: the sandbox is closed");
  }
}
