/**
 * Texts of token ids, by the tokenizer of a run.
 *
 * The run's resolved file names the tokenizer's folder below the state folder. Where it cannot be read (another machine,
 * a run that was cleaned up), tokens are shown by their ids: a view must not fail for that.
 */

import { realpath } from "node:fs/promises";
import path from "node:path";
import type { Logger } from "@hone/telemetry";
import type { Tokenizer } from "@hone/tokenizer";
import type { TokenText } from "../domain/rollout-view.ts";

/** Tokenizers in memory; a large vocabulary takes some 100 MB. */
const MAX_TOKENIZERS = 3;

const UNKNOWN: TokenText = () => undefined;

export class TokenTexts {
  readonly #stateDir: string;
  readonly #logger: Logger;
  readonly #loaded = new Map<string, Promise<TokenText>>();

  /** @param stateDir HONE_STATE_DIR. */
  constructor(stateDir: string, logger: Logger) {
    this.#stateDir = stateDir;
    this.#logger = logger;
  }

  /** The texts for a run. Never rejects. */
  of(configJson: string | null): Promise<TokenText> {
    const folder = tokenizerFolderOf(configJson);
    if (folder === undefined) return Promise.resolve(UNKNOWN);
    const known = this.#loaded.get(folder);
    const loading = known ?? this.#load(folder);
    this.#loaded.delete(folder);
    this.#loaded.set(folder, loading); // the youngest comes last
    for (const oldest of this.#loaded.keys()) {
      if (this.#loaded.size <= MAX_TOKENIZERS) break;
      this.#loaded.delete(oldest);
    }
    return loading;
  }

  async #load(folder: string): Promise<TokenText> {
    try {
      const root = await realpath(this.#stateDir);
      const real = await realpath(path.resolve(root, folder));
      if (!real.startsWith(root + path.sep)) return UNKNOWN;
      // Loaded when the first rollout is looked at: most tracers start without anybody looking.
      const { loadTokenizer } = await import("@hone/tokenizer");
      return textsOf(await loadTokenizer(real));
    } catch (error) {
      this.#logger.info("tokens are shown by their ids, as their tokenizer cannot be read", {
        folder,
        error,
      });
      // Asked again the next time: the run may be writing it just now.
      this.#loaded.delete(folder);
      return UNKNOWN;
    }
  }
}

function textsOf(tokenizer: Tokenizer): TokenText {
  const texts = new Map<number, string | undefined>();
  return (id) => {
    if (!texts.has(id)) texts.set(id, textOf(tokenizer, id));
    return texts.get(id);
  };
}

/** What the token spells; a token that is part of a character only is shown as the vocabulary writes it. */
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
    // A model made from scratch names it below `init`.
    const folder = below(below(model, "init") ?? model, "tokenizer");
    return typeof folder === "string" && folder !== "" ? folder : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
