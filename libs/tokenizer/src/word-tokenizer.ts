/**
 * Tokenizers of small languages, for models that are trained from scratch, with a token for each word and each character.
 *
 * The files have the Hugging Face format, so other programs can load them. The model is byte-pair encoding without merges: a
 * character is a token of its own or `<|unk|>`; words are added tokens, which are found before the characters are split.
 */

/** The language. */
export interface WordLanguage {
  /** Roles of its conversations; a mark `<|role|>` precedes each message of a role. */
  readonly roles: readonly string[];
  readonly words: readonly string[];
  readonly characters: readonly string[];
  /** Jinja text. @default the mark of its role before each message, and `<|end|>` after each answer */
  readonly chatTemplate?: string;
  /** Tokens of the longest context, for programs that read it. @default not stated */
  readonly maxLength?: number;
}

const CHAT_TEMPLATE = [
  "{%- for message in messages -%}",
  "{{- '<|' + message.role + '|>' + message.content -}}",
  "{%- if message.role == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}",
].join("\n");

/**
 * @returns the content of each file by its name.
 * @example wordTokenizerFiles({ roles: ["user", "assistant"], words: ["higher", "lower"], characters: [..."0123456789"] })
 */
export function wordTokenizerFiles({
  roles,
  words,
  characters,
  chatTemplate = CHAT_TEMPLATE,
  maxLength,
}: WordLanguage): Readonly<Record<string, string>> {
  const control = ["<|pad|>", "<|unk|>", ...roles.map((role) => `<|${role}|>`), "<|end|>"];
  const added = [...control, ...words];
  const vocabulary = [...added, ...characters];
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: id < control.length,
    })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: "Fuse" },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: "<|unk|>",
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges: [],
    },
  };
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: "<|end|>",
    pad_token: "<|pad|>",
    unk_token: "<|unk|>",
    clean_up_tokenization_spaces: false,
    ...(maxLength === undefined ? {} : { model_max_length: maxLength }),
  };
  return {
    "tokenizer.json": `${JSON.stringify(tokenizer, null, 2)}\n`,
    "tokenizer_config.json": `${JSON.stringify(config, null, 2)}\n`,
    "chat_template.jinja": `${chatTemplate}\n`,
  };
}
