/**
 * Tests the token ids that the engine holds after each turn, for each family's format: turns are appended, and the result
 * equals the template's rendering of the whole conversation wherever the template leaves earlier turns unchanged.
 *
 * The templates are short versions that behave like those of the families. If HONE_TEST_MODEL names the folder of a real
 * model, its own files are tested in the same way.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ChatMessage } from "./chat-message.ts";
import { ChatRenderer, type RenderedExtension } from "./chat-renderer.ts";
import { loadTokenizer } from "./load-tokenizer.ts";
import { byteTokenizer, type ChatTokens } from "./testing.ts";

const CHATML: ChatTokens = { control: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], eos: "<|im_end|>" };
const LLAMA3: ChatTokens = {
  control: ["<|end_of_text|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
  eos: "<|eot_id|>",
  bos: "<|begin_of_text|>",
};

const chatmlWithSystem = (system: string) => `
{%- if messages[0].role != 'system' %}{{- '<|im_start|>system\\n${system}<|im_end|>\\n' }}{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

/** Always has a system turn with a date, and trims contents. */
const LLAMA3_TEMPLATE = `
{{- bos_token }}
{%- set system = '' %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: ' + strftime_now('%d %b %Y') + '\\n\\n' + system + '<|eot_id|>' }}
{%- for message in messages %}
    {%- set role = 'ipython' if message.role == 'tool' else message.role %}
    {{- '<|start_header_id|>' + role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}`;

/** Drops the thoughts of turns before the last question, and renders tool messages as turns of the user. */
const QWEN3_TEMPLATE = `
{%- set state = namespace(last_question=messages | length - 1, is_found=false) %}
{%- for message in messages[::-1] %}
    {%- if not state.is_found and message.role == 'user' %}
        {%- set state.is_found = true %}
        {%- set state.last_question = messages | length - 1 - loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' and '</think>' in content and loop.index0 < state.last_question %}
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
    {%- endif %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + content + '\\n</tool_response><|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

const { HONE_TEST_MODEL: realModel = "" } = process.env;
const FAMILIES: Readonly<Record<string, ChatRenderer>> = {
  SmolLM2: rendererOf(CHATML, chatmlWithSystem("You are a helpful assistant named SmolLM.")),
  "Qwen2.5": rendererOf(CHATML, chatmlWithSystem("You are Qwen. You are a helpful assistant.")),
  Qwen3: rendererOf(CHATML, QWEN3_TEMPLATE),
  "Llama 3": rendererOf(LLAMA3, LLAMA3_TEMPLATE),
  ...(realModel !== "" && { [realModel]: new ChatRenderer(await loadTokenizer(realModel)) }),
};

function rendererOf(tokens: ChatTokens, template: string): ChatRenderer {
  return new ChatRenderer(byteTokenizer(tokens, template));
}

/** A conversation as the engine holds it: the tokens of its prompts and the tokens that it sampled. */
class Held {
  ids: readonly number[];
  text: string;
  readonly #renderer: ChatRenderer;
  readonly #messages: ChatMessage[];

  constructor(renderer: ChatRenderer, messages: readonly ChatMessage[]) {
    this.#renderer = renderer;
    this.#messages = [...messages];
    ({ tokenIds: this.ids, text: this.text } = renderer.render(messages));
  }

  /** Adds an answer of the model and the next message. @returns "rewrites" if the template changes earlier turns. */
  turn(answer: string, next: ChatMessage): RenderedExtension["kind"] {
    const { tokenizer } = this.#renderer;
    const stopTokenId = tokenizer.eosTokenId!;
    this.#messages.push({ role: "assistant", content: answer }, next);
    const extension = this.#renderer.extend(this.text, { content: answer, stopTokenId }, this.#messages);
    if (extension.kind === "extends") {
      this.ids = [...this.ids, ...tokenizer.encode(answer), stopTokenId, ...extension.addedIds];
      this.text = extension.text;
    }
    return extension.kind;
  }

  rendering(): readonly number[] {
    return this.#renderer.render(this.#messages).tokenIds;
  }
}

const question: ChatMessage = { role: "user", content: "2+2?" };
const next: ChatMessage = { role: "user", content: "in the end?" };
const THOUGHT = "<think>\nthe sum\n</think>\n\n4";

for (const [name, renderer] of Object.entries(FAMILIES)) {
  describe(`conversations of ${name}`, () => {
    for (const start of [[question], [{ role: "system", content: "Be brief." } as const, question]]) {
      test(`starting with ${start.length} messages, the held tokens equal the rendering after every turn`, () => {
        const held = new Held(renderer, start);
        for (const answer of ["4", "Yes, 4é😀.", "the\n end"]) {
          assert.equal(held.turn(answer, next), "extends");
          assert.deepEqual(held.ids, held.rendering());
        }
      });
    }

    test("a tool message is appended", () => {
      const held = new Held(renderer, [question]);
      assert.equal(held.turn("call the tool", { role: "tool", content: "4" }), "extends");
      assert.deepEqual(held.ids, held.rendering());
    });

    test("the same conversation gives the same tokens on every date", (context) => {
      const today = renderer.render([question]);
      context.mock.timers.enable({ apis: ["Date"], now: new Date("2031-01-01") });
      assert.deepEqual(renderer.render([question]), today);
    });
  });
}

describe("templates that change earlier turns", () => {
  test("Qwen3 drops thoughts at the next question, so a new sample starts", () => {
    const held = new Held(FAMILIES.Qwen3!, [question]);
    assert.equal(held.turn(THOUGHT, next), "rewrites");
  });

  test("Qwen3 keeps thoughts while tools answer, so the sample continues", () => {
    const held = new Held(FAMILIES.Qwen3!, [question]);
    assert.equal(held.turn(THOUGHT, { role: "tool", content: "4" }), "extends");
    assert.deepEqual(held.ids, held.rendering());
  });

  test("the other families keep thoughts", () => {
    for (const name of ["SmolLM2", "Qwen2.5", "Llama 3"]) {
      const held = new Held(FAMILIES[name]!, [question]);
      assert.equal(held.turn(THOUGHT, next), "extends", name);
      assert.deepEqual(held.ids, held.rendering());
    }
  });

  test("Llama 3 trims answers, but the sample keeps the sampled white space", () => {
    const renderer = FAMILIES["Llama 3"]!;
    const held = new Held(renderer, [question]);
    assert.equal(held.turn(" 4 \n", next), "extends");
    assert.notDeepEqual(held.ids, held.rendering());
    const text = (ids: readonly number[]) => renderer.tokenizer.decode(ids);
    assert.equal(text(held.ids).replace(" 4 \n", "4"), text(held.rendering()));
  });
});
