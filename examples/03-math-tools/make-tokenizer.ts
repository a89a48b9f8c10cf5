/**
 * Writes this example's tokenizer: one token for each word of the stories and each number up to 99, so that a call of the
 * calculator has eight tokens and an answer three.
 *
 *     node examples/03-math-tools/make-tokenizer.ts [FOLDER]
 *
 * Words and numbers include the space before them; other text is split into characters.
 */

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { scriptArguments } from "@hone/core";
import { wordTokenizerFiles } from "@hone/tokenizer";
import { WORDS } from "./stories.ts";

/** The parts of a call of the calculator and of an answer, besides numbers and operators. */
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

const files = wordTokenizerFiles({
  roles: ["system", "user", "assistant", "tool"],
  words: [...CALL_TOKENS, ...words, ...numbers],
  characters: CHARACTERS,
  chatTemplate: CHAT_TEMPLATE,
  maxLength: 1_024,
});
const { positionals } = scriptArguments(process, {
  usage:
    "node examples/03-math-tools/make-tokenizer.ts [FOLDER]\n\nWrites the tokenizer of this example to FOLDER (where this file lies).",
  takesMore: true,
});
const [folder = import.meta.dirname] = positionals;
for (const [name, content] of Object.entries(files)) await writeFile(path.join(folder, name), content);
