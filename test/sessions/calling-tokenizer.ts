/**
 * A tokenizer whose tokens are words and whole tool calls, so that a small untrained model calls tools, and ends its answers
 * after about a thousand tokens.
 */

import { wordTokenizerFiles } from "@hone/tokenizer";

const NUM_CALLS = 100;
const NUM_WORDS = 900;
const CALLS = Array.from(
  { length: NUM_CALLS },
  (_, place) => `<tool_call>{"name":"look","arguments":{"place":"p${place}"}}</tool_call>`,
);
const CONSONANTS = [..."bdfgklmnprst"];
const WORDS = CONSONANTS.flatMap((a) => CONSONANTS.flatMap((b) => CONSONANTS.map((c) => `${a}o${b}a${c}i `)));

/** The template shows tools by a single word, because an untrained model does not understand their descriptions. */
const CHAT_TEMPLATE = [
  "{%- if tools -%}{{- '<|system|>tools' -}}{%- endif -%}",
  "{%- for message in messages -%}",
  "{{- '<|' + message.role + '|>' + message.content -}}",
  "{%- for call in message.tool_calls or [] -%}",
  `{{- '<tool_call>{"name":"' + call.function.name + '","arguments":' + (call.function.arguments | tojson) + '}</tool_call>' -}}`,
  "{%- endfor -%}",
  "{%- if message.role == 'assistant' -%}{{- '<|end|>' -}}{%- endif -%}",
  "{%- endfor -%}",
  "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}",
].join("\n");

/** The tokenizer's files in the form of a run file's `tokenizer.files`. */
export function callingTokenizerFiles(): Readonly<Record<string, string>> {
  return wordTokenizerFiles({
    roles: ["system", "user", "tool", "assistant"],
    words: [...CALLS, ...WORDS.slice(0, NUM_WORDS)],
    characters: [..."abcdefghijklmnopqrstuvwxyz0123456789 .,?!"],
    chatTemplate: CHAT_TEMPLATE,
  });
}
