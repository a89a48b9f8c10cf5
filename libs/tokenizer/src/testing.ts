/** A small tokenizer for tests: one token per byte, a few merges, ChatML's control tokens. Development only. */

import { Tokenizer } from "./tokenizer.ts";

/** ChatML, as many open models write it. */
export const CHATML_TEMPLATE =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** ChatML that drops the thoughts of earlier turns, as reasoning models do. */
export const FORGETFUL_TEMPLATE =
  "{% for message in messages %}{% set content = message['content'] %}" +
  "{% if message['role'] == 'assistant' and '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}" +
  "{{ '<|im_start|>' + message['role'] + '\\n' + content + '<|im_end|>\\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

const CONTROL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const MERGES: ReadonlyArray<readonly [string, string]> = [
  ["t", "h"],
  ["th", "e"],
  ["Ġ", "a"],
  ["i", "n"],
];

/** Tokens after the bytes and the merges. */
const FIRST_CONTROL_ID = 256 + MERGES.length;

/** The differences between the tokenizers of chat models. */
export interface ChatTokens {
  /** Each is one token. */
  readonly control: readonly string[];
  readonly eos: string;
  readonly bos?: string;
}

/** A byte-level tokenizer with ChatML's control tokens; ids 0..255 are the bytes in GPT-2's alphabet. */
export function chatmlTokenizer(chatTemplate: string | undefined = CHATML_TEMPLATE): Tokenizer {
  return byteTokenizer({ control: CONTROL_TOKENS, eos: "<|im_end|>" }, chatTemplate);
}

/** A byte-level tokenizer with other control tokens; the first one ends a text, beside `eos`. */
export function byteTokenizer(tokens: ChatTokens, chatTemplate: string): Tokenizer {
  const { tokenizer, config } = byteTokenizerParts(tokens);
  return new Tokenizer({
    tokenizer,
    config,
    chatTemplate,
    generationStopIds: [FIRST_CONTROL_ID],
    digest: "byte-fixture",
  });
}

/** {@link chatmlTokenizer} with a post-processor that begins a text with `<|endoftext|>`, as Llama's tokenizers do. */
export function beginningTokenizer(): Tokenizer {
  const { tokenizer, config } = byteTokenizerParts({ control: CONTROL_TOKENS, eos: "<|im_end|>" });
  const begin = { SpecialToken: { id: "<|endoftext|>", type_id: 0 } };
  const text = { Sequence: { id: "A", type_id: 0 } };
  const processor = {
    type: "TemplateProcessing",
    single: [begin, text],
    pair: [begin, text],
    special_tokens: {
      "<|endoftext|>": { id: "<|endoftext|>", ids: [FIRST_CONTROL_ID], tokens: ["<|endoftext|>"] },
    },
  };
  return new Tokenizer({
    tokenizer: { ...tokenizer, post_processor: processor },
    config,
    chatTemplate: undefined,
    generationStopIds: [],
    digest: "beginning-fixture",
  });
}

/** The files of {@link chatmlTokenizer} for a checkpoint; without a chat template if it is undefined. */
export function chatmlTokenizerFiles(
  chatTemplate: string | undefined = CHATML_TEMPLATE,
): Readonly<Record<string, string>> {
  const { tokenizer, config } = byteTokenizerParts({ control: CONTROL_TOKENS, eos: "<|im_end|>" });
  return {
    "tokenizer.json": JSON.stringify(tokenizer),
    "tokenizer_config.json": JSON.stringify(config),
    "generation_config.json": JSON.stringify({ eos_token_id: [FIRST_CONTROL_ID] }),
    ...(chatTemplate === undefined ? {} : { "chat_template.jinja": chatTemplate }),
  };
}

function byteTokenizerParts({ control, eos, bos }: ChatTokens) {
  const tokens = [...byteAlphabet(), ...MERGES.map((pair) => pair.join("")), ...control];
  const vocab = Object.fromEntries(tokens.map((token, id) => [token, id]));
  return {
    tokenizer: {
      version: "1.0",
      added_tokens: control.map((content) => ({
        id: vocab[content],
        content,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
      })),
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: true },
      post_processor: null,
      decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: true },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        vocab,
        merges: MERGES.map((pair) => pair.join(" ")),
      },
    },
    config: {
      eos_token: eos,
      pad_token: { content: control[0] },
      ...(bos === undefined ? {} : { bos_token: bos }),
    },
  };
}

/** GPT-2's printable stand-ins for the 256 bytes, in byte order. */
function byteAlphabet(): string[] {
  let shifted = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(isPrintable ? byte : 256 + shifted++);
  });
}

/** ChatML that renders tools and tool calls as the templates of Qwen do: tool messages become turns of the user. */
export const TOOL_TEMPLATE = `
{%- if tools %}{{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '<tools>' }}{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
    {{- '\\n</tools>\\nAnswer with <tool_call></tool_call>.<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or message.role == 'assistant' %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content }}
        {%- for call in message.tool_calls or [] %}
            {{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {%- if messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;
