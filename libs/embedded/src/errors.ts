/** Errors of starting and ending child processes. */

import { RetryableError, TerminalError } from "@hone/core";

/** A program that Hone needs is missing and cannot be downloaded. The message contains the command that installs it. */
export class ProgramMissingError extends TerminalError {
  readonly program: string;

  constructor(program: string, message: string, options?: ErrorOptions) {
    super("PROGRAM_MISSING", message, options);
    this.program = program;
  }
}

/** A file cannot be downloaded, has another checksum than the one in the repository, or has other contents than expected. */
export class DownloadError extends TerminalError {
  constructor(message: string, options?: ErrorOptions) {
    super("DOWNLOAD", message, options);
  }
}

/** A child process ended during its start, or was not ready in time. The error carries the end of its log. */
export class StartError extends RetryableError {
  readonly program: string;
  readonly logTail: string;

  constructor(program: string, message: string, logTail: string, options?: ErrorOptions) {
    super("START", logTail === "" ? message : `${message}\n${logTail}`, options);
    this.program = program;
    this.logTail = logTail;
  }
}

/** The state folder cannot be used as it is, and repairing it would lose data or needs another user's rights. */
export class StateFolderError extends TerminalError {
  readonly folder: string;

  constructor(folder: string, message: string, options?: ErrorOptions) {
    super("STATE_FOLDER", message, options);
    this.folder = folder;
  }
}
