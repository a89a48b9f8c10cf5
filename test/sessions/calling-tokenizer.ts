/**
 * A tokenizer whose tokens are words, and whole calls of a tool: a small model that was never trained calls tools, one after
 * the other, and ends its answers after a thousand tokens or so.
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

/** Tools are shown by a word: what they are is nothing to a model that knows no words. */
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

/** Files of the tokenizer, as a run file takes them. */
export function callingTokenizerFiles(): Readonly<Record<string, string>> {
  return wordTokenizerFiles({
    roles: ["system", "user", "tool", "assistant"],
    words: [...CALLS, ...WORDS.slice(0, NUM_WORDS)],
    characters: [..."abcdefghijklmnopqrstuvwxyz0123456789 .,?!"],
    chatTemplate: CHAT_TEMPLATE,
  });
}
