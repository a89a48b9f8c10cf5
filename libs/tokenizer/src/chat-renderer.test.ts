import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ChatMessage } from "./chat-message.ts";
import { ChatRenderer } from "./chat-renderer.ts";
import { ChatTemplateError } from "./errors.ts";
import { CHATML_TEMPLATE, chatmlTokenizer, FORGETFUL_TEMPLATE } from "./testing.ts";
import { Tokenizer } from "./tokenizer.ts";

const tokenizer = chatmlTokenizer();
const renderer = new ChatRenderer(tokenizer);
const imEnd = tokenizer.tokenId("<|im_end|>")!;
const question: ChatMessage = { role: "user", content: "2+2?" };
const next: ChatMessage = { role: "user", content: "sure?" };

describe("ChatRenderer", () => {
  test("render() returns the template's text up to where the model starts to write", () => {
    const prompt = renderer.render([{ role: "system", content: "Be brief." }, question]);
    assert.equal(
      prompt.text,
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n",
    );
    assert.equal(tokenizer.decode(prompt.tokenIds), prompt.text);
  });

  test("extend() adds the template's text after a sampled stop token", () => {
    const first = renderer.render([question]);
    const extension = renderer.extend(first.text, { content: "4", stopTokenId: imEnd }, [
      question,
      { role: "assistant", content: "4" },
      next,
    ]);
    assert.equal(extension.kind, "extends");
    assert.equal(extension.addedText, "\n<|im_start|>user\nsure?<|im_end|>\n<|im_start|>assistant\n");
    assert.deepEqual(extension.addedIds, tokenizer.encode(extension.addedText));
  });

  test("extend() also adds the end of the turn if the answer was cut off", () => {
    const first = renderer.render([question]);
    const extension = renderer.extend(first.text, { content: "4 beca", stopTokenId: undefined }, [
      question,
      { role: "assistant", content: "4 beca" },
      next,
    ]);
    assert.equal(extension.kind, "extends");
    assert.ok(extension.addedText.startsWith("<|im_end|>\n<|im_start|>user"));
  });

  test("extend() gives the rendering of the whole conversation after every turn", () => {
    const messages: ChatMessage[] = [question];
    let { text, tokenIds: ids } = renderer.render(messages);
    for (const answer of ["4", "Yes.", "the end"]) {
      const sampled = [...tokenizer.encode(answer), imEnd];
      messages.push({ role: "assistant", content: answer }, next);
      const extension = renderer.extend(text, { content: answer, stopTokenId: imEnd }, messages);
      assert.equal(extension.kind, "extends");
      ids = [...ids, ...sampled, ...extension.addedIds];
      text = extension.text;
    }
    assert.equal(tokenizer.decode(ids), renderer.render(messages).text);
  });

  test("extend() reports that a template rewrites earlier turns", () => {
    const forgetful = new ChatRenderer(chatmlTokenizer(FORGETFUL_TEMPLATE));
    const first = forgetful.render([question]);
    const content = "<think>easy</think>4";
    const extension = forgetful.extend(first.text, { content, stopTokenId: imEnd }, [
      question,
      { role: "assistant", content },
      next,
    ]);
    assert.deepEqual(extension, { kind: "rewrites" });
  });

  test("extend() reports that earlier messages were changed", () => {
    const first = renderer.render([question]);
    const extension = renderer.extend(first.text, { content: "4", stopTokenId: imEnd }, [
      { role: "user", content: "3+3?" },
      { role: "assistant", content: "4" },
      next,
    ]);
    assert.deepEqual(extension, { kind: "rewrites" });
  });

  test("extend() continues an answer that the template trims", () => {
    const trimming = new ChatRenderer(
      chatmlTokenizer(CHATML_TEMPLATE.replace("message['content']", "message['content'] | trim")),
    );
    const first = trimming.render([question]);
    const content = " 4 \n";
    const extension = trimming.extend(first.text, { content, stopTokenId: imEnd }, [
      question,
      { role: "assistant", content },
      next,
    ]);
    assert.equal(extension.kind, "extends");
    assert.ok(extension.addedText.startsWith("\n<|im_start|>user"));
  });

  test("a tokenizer without a template is refused", () => {
    const bare = new Tokenizer({
      tokenizer: {
        added_tokens: [],
        normalizer: null,
        pre_tokenizer: null,
        post_processor: null,
        decoder: null,
        model: { type: "BPE", vocab: { a: 0 }, merges: [] },
      },
      config: {},
      chatTemplate: undefined,
      generationStopIds: [],
      digest: "bare",
    });
    assert.throws(() => new ChatRenderer(bare), ChatTemplateError);
  });

  test("an exception that a template raises is reported with its message", () => {
    const strict = new ChatRenderer(chatmlTokenizer("{{ raise_exception('roles must alternate') }}"));
    assert.throws(() => strict.render([question]), /roles must alternate/);
  });
});
