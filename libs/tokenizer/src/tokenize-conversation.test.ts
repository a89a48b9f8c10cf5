import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ChatMessage } from "./chat-message.ts";
import { ChatRenderer } from "./chat-renderer.ts";
import { byteTokenizer, chatmlTokenizer } from "./testing.ts";
import { type TokenizedSample, tokenizeConversation } from "./tokenize-conversation.ts";

const user = (content: string): ChatMessage => ({ role: "user", content });
const assistant = (content: string): ChatMessage => ({ role: "assistant", content });

describe("tokenizeConversation()", () => {
  const renderer = new ChatRenderer(chatmlTokenizer());

  /** The whole sample and its marked tokens, as text. */
  const shown = ({ tokenIds, lossMask }: TokenizedSample, from = renderer) => ({
    all: from.tokenizer.decode([...tokenIds]),
    marked: from.tokenizer.decode([...tokenIds].filter((_, i) => lossMask[i] === 1)),
  });

  test("marks the assistant's answers with their stop tokens, in one sample for all turns", () => {
    const messages = [user("Hi"), assistant("Hello"), user("2 + 2?"), assistant("4")];
    const samples = tokenizeConversation(renderer, messages);
    assert.equal(samples.length, 1);
    const { all, marked } = shown(samples[0]!);
    assert.equal(marked, "Hello<|im_end|>4<|im_end|>");
    const whole = renderer.render(messages).text;
    assert.ok(whole.startsWith(all), `${all} in ${whole}`);
  });

  test("leaves out the messages after the last answer", () => {
    const [ended] = tokenizeConversation(renderer, [user("Hi"), assistant("Hello")]);
    const [more] = tokenizeConversation(renderer, [user("Hi"), assistant("Hello"), user("More?")]);
    assert.deepEqual(more, ended);
  });

  test("starts a new sample if the template changes earlier turns, and marks each answer once", () => {
    const forgetful = new ChatRenderer(
      byteTokenizer(
        { control: ["<|im_end|>", "<|end|>"], eos: "<|end|>" },
        "{% for m in messages[-2:] %}{{ m.role + ':' + m.content + '<|im_end|>' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
      ),
    );
    const messages = [user("a"), assistant("b"), user("c"), user("d"), assistant("e")];
    const samples = tokenizeConversation(forgetful, messages).map((sample) => shown(sample, forgetful));
    assert.deepEqual(
      samples.map(({ marked }) => marked.slice(0, 1)),
      ["b", "e"],
    );
    assert.match(samples[1]!.all, /^user:c<\|im_end\|>user:d<\|im_end\|>assistant:e/);
  });

  test("ends an answer with the template's stop token, or with the tokenizer's if the template has none", () => {
    const template =
      "{% for m in messages %}{{ m.role + ':' + m.content + '<|eot|>' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
    // The first control token is a stop token as well.
    for (const [control, marked] of [
      [["<|eot|>", "<|end|>"], "b<|eot|>"],
      [["<|other|>", "<|eot|>", "<|end|>"], "b<|end|>"],
    ] as const) {
      const own = new ChatRenderer(byteTokenizer({ control, eos: "<|end|>" }, template));
      const [sample] = tokenizeConversation(own, [user("a"), assistant("b")]);
      assert.equal(shown(sample!, own).marked, marked);
    }
  });
});
