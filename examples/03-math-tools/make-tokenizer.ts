/**
 * Writes this example's tokenizer: one token for each word of the stories and each number up to 99, so that a call of the
 * calculator is eight tokens and an answer three.
 *
 *     node examples/03-math-tools/make-tokenizer.ts [FOLDER]
 *
 * The model is byte-pair encoding without merges: what is no word is split into characters. Words and numbers are added
 * tokens with the space before them, found before anything is split.
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { WORDS } from "./stories.ts";

/** Tokens that shape a conversation; decoding may skip them. */
const CONTROL_TOKENS = [
  "<|pad|>",
  "<|unk|>",
  "<|system|>",
  "<|user|>",
  "<|assistant|>",
  "<|tool|>",
  "<|end|>",
];
/** What a call of the calculator and an answer consist of, beside numbers and signs. */
const CALL_TOKENS = [
  "<tool_call>",
  "</tool_call>",
  '{"name": "calculator", "arguments": {"expression": "',
  '"}}',
  "calculator",
  "####",
  " +",
  " -",
  " *",
];
const CHARACTERS = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));

/** Calls as Hermes and Qwen write them. */
const CHAT_TEMPLATE = [
  "{%- if tools -%}",
  "{{- '<|system|>' -}}{%- for tool in tools -%}{{- tool.function.name -}}{%- endfor -%}",
  "{%- endif -%}",
  "{%- for message in messages -%}",
  "{{- '<|' + message.role + '|>' + (' ' if message.role in ['user', 'tool'] else '') + message.content -}}",
  "{%- for call in message.tool_calls or [] -%}",
  `{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}</tool_call>' -}}`,
  "{%- endfor -%}",
  "{%- if message.role == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}",
].join("\n");

const words = WORDS.map((word) => ` ${word}`);
const numbers = Array.from({ length: 100 }, (_, number) => ` ${number}`);
const addedTokens = [...CONTROL_TOKENS, ...CALL_TOKENS, ...words, ...numbers];
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

const folder = process.argv[2] ?? import.meta.dirname;
await writeFile(path.join(folder, "tokenizer.json"), `${JSON.stringify(tokenizer, null, 2)}\n`);
await writeFile(path.join(folder, "tokenizer_config.json"), `${JSON.stringify(tokenizerConfig, null, 2)}\n`);
await writeFile(path.join(folder, "chat_template.jinja"), `${CHAT_TEMPLATE}\n`);
