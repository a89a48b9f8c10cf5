/**
 * The texts of token ids, from the tokenizer of a run.
 *
 * The run's resolved file names the tokenizer's folder below the state folder. Where that cannot be read, as on another
 * machine or after a run was cleaned up, tokens are shown by their ids and the view does not fail.
 */

import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "@hone/telemetry";
import type { Tokenizer } from "@hone/tokenizer";
import type { RunTokens } from "../../domain/rollout-view.ts";

/** Most tokenizers in memory; one with a large vocabulary takes some 100 MB. */
const MAX_TOKENIZERS = 3;

const UNKNOWN: RunTokens = { textOf: () => undefined, chatTemplate: undefined };

export class TokenTexts {
  readonly #stateDir: string;
  readonly #logger: Logger;
  readonly #loaded = new Map<string, Promise<RunTokens>>();

  /** @param stateDir HONE_STATE_DIR. */
  constructor(stateDir: string, logger: Logger) {
    this.#stateDir = stateDir;
    this.#logger = logger;
  }

  /** Gives the texts for a run. Never rejects. */
  of(configJson: string | null): Promise<RunTokens> {
    const folder = tokenizerFolderOf(configJson);
    if (folder === undefined) return Promise.resolve(UNKNOWN);
    const known = this.#loaded.get(folder);
    const loading = known ?? this.#load(folder);
    this.#loaded.delete(folder);
    this.#loaded.set(folder, loading); // the most recently used comes last
    for (const oldest of this.#loaded.keys()) {
      if (this.#loaded.size <= MAX_TOKENIZERS) break;
      this.#loaded.delete(oldest);
    }
    return loading;
  }

  async #load(folder: string): Promise<RunTokens> {
    try {
      const root = await realpath(this.#stateDir);
      const real = await realpath(path.resolve(root, folder));
      if (!real.startsWith(root + path.sep)) return UNKNOWN;
      // Imported only when somebody looks at a rollout, so that the service starts faster.
      const { loadTokenizer } = await import("@hone/tokenizer");
      return textsOf(await loadTokenizer(real));
    } catch (error) {
      this.#logger.info("tokens are shown by their ids, as their tokenizer cannot be read", {
        folder,
        error,
      });
      // Forgotten, so that it is read again the next time: the run may be writing it at the moment.
      this.#loaded.delete(folder);
      return UNKNOWN;
    }
  }
}

function textsOf(tokenizer: Tokenizer): RunTokens {
  const texts = new Map<number, string | undefined>();
  return {
    textOf: (id) => {
      if (!texts.has(id)) texts.set(id, textOf(tokenizer, id));
      return texts.get(id);
    },
    chatTemplate: tokenizer.chatTemplate,
  };
}

/** The text of a token. One that is only a part of a character is shown as the vocabulary writes it. */
function textOf(tokenizer: Tokenizer, id: number): string | undefined {
  const token = tokenizer.tokenOf(id);
  if (token === undefined) return undefined;
  const text = tokenizer.decode([id]);
  return text === "" || text.includes("\uFFFD") ? token : text;
}

function tokenizerFolderOf(configJson: string | null): string | undefined {
  if (configJson === null) return undefined;
  const below = (value: unknown, key: string): unknown =>
    typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  try {
    const model = below(JSON.parse(configJson), "model");
    // For a model that is made from scratch the tokenizer is below `init`.
    const folder = below(below(model, "init") ?? model, "tokenizer");
    return typeof folder === "string" && folder !== "" ? folder : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
