/** Errors of this package. */

import { TerminalError } from "@hone/core";

/** A tokenizer's folder cannot be used, because a file is missing or invalid. */
export class TokenizerLoadError extends TerminalError {
  readonly folder: string;

  constructor(rule: string, folder: string, options?: ErrorOptions) {
    super("TOKENIZER_LOAD", `Cannot load the tokenizer of "${folder}": ${rule}`, options);
    this.folder = folder;
  }
}

/** The regular expressions of a tokenizer's files exceed their time limit. */
export class EncodingLimitError extends TerminalError {
  constructor(limit: string, value: string, options?: ErrorOptions) {
    super(
      "ENCODING_LIMIT",
      `Cannot encode ${value}: the regular expressions of its tokenizer took more than ${limit}`,
      options,
    );
  }
}

/** A chat template exceeds a limit of rendering. */
export class TemplateLimitError extends TerminalError {
  /** @param limit the allowed amount, such as "100 steps". @param value the amount of this template. */
  constructor(limit: string, value: string) {
    super("TEMPLATE_LIMIT", `a chat template may take ${limit}, and this one takes ${value}`);
  }
}

/** A chat template cannot render the given messages, or there is no usable template. */
export class ChatTemplateError extends TerminalError {
  /** @param problem a sentence. */
  constructor(problem: string, options?: ErrorOptions) {
    super("CHAT_TEMPLATE", problem, options);
  }
}
