/**
 * Writes this example's tokenizer: 32 tokens, one per symbol of the lake and one per word of an answer, so that an
 * answer `<answer>Right</answer>` is three tokens and the end of the turn a fourth.
 *
 *     node examples/01-frozen-lake/make-tokenizer.ts
 *
 * The model is byte-pair encoding without merges: every character is a token of its own or `<|unk|>`. Words are added
 * tokens, found before the characters are split.
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";

/** Tokens that shape a conversation; decoding may skip them. */
const CONTROL_TOKENS = ["<|pad|>", "<|unk|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"];
/** What an answer consists of. */
const ANSWER_TOKENS = ["<answer>", "</answer>", "Left", "Down", "Right", "Up"];
/** Player, empty, hole, goal, player in a hole, player on the goal; rows and coordinates. */
const CHARACTERS = [..."P_OGX√", "\n", " ", ..."0123456789", ..."-,"];

const CHAT_TEMPLATE = [
  "{%- for message in messages -%}",
  "{{- '<|' + message.role + '|>' + message.content -}}",
  "{%- if message.role == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}",
].join("\n");

const addedTokens = [...CONTROL_TOKENS, ...ANSWER_TOKENS];
const vocabulary = [...addedTokens, ...CHARACTERS];

const tokenizer = {
  version: "1.0",
  truncation: null,
  padding: null,
  added_tokens: addedTokens.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: CONTROL_TOKENS.includes(content),
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

const tokenizerConfig = {
  tokenizer_class: "PreTrainedTokenizerFast",
  eos_token: "<|end|>",
  pad_token: "<|pad|>",
  unk_token: "<|unk|>",
  clean_up_tokenization_spaces: false,
  model_max_length: 1_024,
};

const folder = import.meta.dirname;
await writeFile(path.join(folder, "tokenizer.json"), `${JSON.stringify(tokenizer, null, 2)}\n`);
await writeFile(path.join(folder, "tokenizer_config.json"), `${JSON.stringify(tokenizerConfig, null, 2)}\n`);
await writeFile(path.join(folder, "chat_template.jinja"), `${CHAT_TEMPLATE}\n`);
