/**
 * A Hugging Face tokenizer: text to token ids and back.
 *
 * Wraps `@huggingface/tokenizers`, which reads `tokenizer.json` as the Rust library does. Hone adds stop tokens, the chat
 * template, a digest that identifies the tokenizer, and a cache of encodings.
 */

import { Tokenizer as HuggingFaceTokenizer } from "@huggingface/tokenizers";
import { EncodingCache } from "./encoding-cache.ts";
import { TokenizerLoadError } from "./errors.ts";
import { PatternWatch } from "./pattern-watch.ts";

/** The contents of a tokenizer's folder. */
export interface TokenizerFiles {
  /** Content of `tokenizer.json`. */
  readonly tokenizer: Record<string, unknown>;
  /** Content of `tokenizer_config.json`. */
  readonly config: Record<string, unknown>;
  /** Jinja text; absent = the model has no chat format. */
  readonly chatTemplate: string | undefined;
  /** Stop ids of `generation_config.json`, in addition to the tokenizer's own. */
  readonly generationStopIds: readonly number[];
  /** SHA-256 over the files, hexadecimal. */
  readonly digest: string;
}

/** Size of the cache: enough for every state of the small environments and for many prompts of groups. */
const CACHED_ENCODINGS = { maxEntries: 16_384, maxValues: 4_194_304 };

/** Models have up to 262,144 tokens. Every id up to the largest takes memory, so an absurd id would take all of it. */
const MAX_VOCABULARY = 1_048_576;

/** Texts on which most regular expressions with unlimited run time show it, so that they are found before the first conversation. */
const PROBES = ["a", " ", "0", "-", "a ", "aA0", "\n", "é"].map((piece) => `${piece.repeat(48)}!`);
/** Time limit for a probe; thousands of times what an ordinary tokenizer takes. */
const PROBE_MS = 1_000;

export class Tokenizer {
  /** Identifies this tokenizer: two tokenizers with the same digest give the same ids. */
  readonly digest: string;
  /** Jinja text of the chat format. */
  readonly chatTemplate: string | undefined;
  /** Ends a turn; undefined = the tokenizer names none. */
  readonly eosTokenId: number | undefined;
  /** Every id that ends a generation, ascending. */
  readonly stopTokenIds: readonly number[];
  /** One more than the largest id. */
  readonly vocabSize: number;
  /** Special tokens by the names that chat templates use: `bos_token`, `eos_token` and so on. */
  readonly specialTokens: Readonly<Record<string, string>>;
  /** Matches control tokens that are spelled out in a text; matches nothing if the tokenizer has none. */
  readonly controlPattern: RegExp;
  readonly #inner: HuggingFaceTokenizer;
  readonly #encoding: PatternWatch;
  readonly #decoding: PatternWatch;
  readonly #encodings = new EncodingCache(CACHED_ENCODINGS);
  readonly #specialIds: ReadonlySet<number>;

  /** @throws {TokenizerLoadError | EncodingLimitError} and the library's errors for files that it cannot use. */
  constructor(files: TokenizerFiles) {
    const { tokenizer } = files;
    checkIds(tokenizer);
    this.#inner = new HuggingFaceTokenizer(tokenizer, files.config);
    const encoders = [tokenizer.normalizer, tokenizer.pre_tokenizer];
    this.#encoding = new PatternWatch(encoders);
    this.#decoding = new PatternWatch([tokenizer.decoder]);
    probe(this.#inner, new PatternWatch(encoders, { baseMs: PROBE_MS }));
    this.digest = files.digest;
    this.chatTemplate = files.chatTemplate;
    this.specialTokens = readSpecialTokens(files.config);
    const eosToken = this.specialTokens.eos_token;
    this.eosTokenId = eosToken === undefined ? undefined : this.tokenId(eosToken);
    const stopIds = new Set(files.generationStopIds);
    if (this.eosTokenId !== undefined) stopIds.add(this.eosTokenId);
    this.stopTokenIds = [...stopIds].sort((a, b) => a - b);
    const addedTokens = this.#inner.get_added_tokens_decoder();
    const special = [...addedTokens].filter(([, token]) => token.special);
    this.#specialIds = new Set(special.map(([id]) => id));
    const stops = this.stopTokenIds.flatMap((id) => this.tokenOf(id) ?? []);
    this.controlPattern = patternOf([...special.map(([, { content }]) => content), ...stops]);
    let largestId = -1;
    for (const id of this.#inner.get_vocab().values()) largestId = Math.max(largestId, id);
    this.vocabSize = largestId + 1;
  }

  /**
   * Token ids of a text; special tokens that are spelled out in it become their ids, and none is added.
   * @returns a shared array, which must not be changed.
   */
  encode(text: string): readonly number[] {
    if (text === "") return NO_IDS;
    return this.#encodings.getOrEncode(text, (uncached) => this.#encode(uncached, false));
  }

  /** Token ids of a complete text, with the tokens that the tokenizer's post-processor puts around it. */
  encodeText(text: string): readonly number[] {
    return this.#encode(text, true);
  }

  /** Text of token ids, exactly as their tokens spell it. */
  decode(ids: readonly number[], options: { skipSpecialTokens?: boolean } = {}): string {
    const kept =
      options.skipSpecialTokens === true ? ids.filter((id) => !this.#specialIds.has(id)) : [...ids];
    if (kept.length === 0) return "";
    return this.#decoding.run(kept.length, () =>
      this.#inner.decode(kept, { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
    );
  }

  /** Id of one token, as the vocabulary spells it. */
  tokenId(token: string): number | undefined {
    return this.#inner.token_to_id(token);
  }

  /** The token of an id, as the vocabulary spells it. */
  tokenOf(id: number): string | undefined {
    return this.#inner.id_to_token(id);
  }

  isSpecial(id: number): boolean {
    return this.#specialIds.has(id);
  }

  #encode(text: string, isWhole: boolean): readonly number[] {
    return this.#encoding.run(
      text.length,
      () => this.#inner.encode(text, { add_special_tokens: isWhole }).ids,
    );
  }
}

function probe(inner: HuggingFaceTokenizer, watch: PatternWatch): void {
  if (!watch.isWatching) return;
  for (const text of PROBES) watch.run(text.length, () => inner.encode(text));
}

const NO_IDS: readonly number[] = [];

/** Matches any of the tokens. The longest come first, because one token may begin with another. */
function patternOf(tokens: readonly string[]): RegExp {
  const spelled = [...new Set(tokens)].filter((token) => token !== "").sort((a, b) => b.length - a.length);
  return spelled.length === 0 ? /(?!)/ : new RegExp(spelled.map(escaped).join("|"));
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** Checks the ids before the library makes arrays as long as the largest id. */
function checkIds({ model, added_tokens: added }: Record<string, unknown>): void {
  const vocab = isObject(model) && isObject(model.vocab) ? model.vocab : {};
  const addedIds = Array.isArray(added) ? added.map((token) => (isObject(token) ? token.id : undefined)) : [];
  // In a list, the position of a token is its id.
  const ids = Array.isArray(vocab) ? [vocab.length] : Object.values(vocab);
  for (const id of [...ids, ...addedIds]) {
    if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id < MAX_VOCABULARY) continue;
    throw new TokenizerLoadError(
      `its ids must be whole numbers below ${MAX_VOCABULARY}, and one is ${id}`,
      "tokenizer.json",
    );
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The entries `<name>_token` of a tokenizer's configuration; each is a string or an object with its content. */
function readSpecialTokens(config: Record<string, unknown>): Record<string, string> {
  const tokens: Record<string, string> = {};
  for (const [key, value] of Object.entries(config)) {
    if (!key.endsWith("_token")) continue;
    if (typeof value === "string") tokens[key] = value;
    else if (typeof value === "object" && value !== null && "content" in value) {
      if (typeof value.content === "string") tokens[key] = value.content;
    }
  }
  return tokens;
}
