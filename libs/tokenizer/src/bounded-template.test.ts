import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { damaged, fuzz } from "@hone/testing/fuzz";
import fc from "fast-check";
import { BoundedTemplate } from "./bounded-template.ts";
import type { ChatMessage } from "./chat-message.ts";
import { ChatRenderer } from "./chat-renderer.ts";
import { ChatTemplateError, TemplateLimitError } from "./errors.ts";
import { CHATML_TEMPLATE, chatmlTokenizer, FORGETFUL_TEMPLATE } from "./testing.ts";

/** CPU time within which a rendering must be refused; it takes a few hundred milliseconds on a slow core. */
const REFUSED_WITHIN_MS = 5_000;

const render = (text: string, messages: readonly ChatMessage[] = []) =>
  new BoundedTemplate(text).render({ messages });

const nested = (depth: number) => `${"{% if true %}".repeat(depth)}x${"{% endif %}".repeat(depth)}`;

const BOMBS: Readonly<Record<string, string>> = {
  "a huge range": "{% for i in range(1000000000) %}x{% endfor %}",
  "a range without end": "{% for i in range(0, 1, 0) %}x{% endfor %}",
  "loops in loops":
    "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}x{% endfor %}{% endfor %}{% endfor %}",
  "loops in loops that do nothing":
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
  "a text that doubles":
    "{% set n = namespace(t='xxxxxxxx') %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}{{ n.t }}",
  "a list that doubles":
    "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = n.t + n.t %}{% endfor %}{{ n.t | length }}",
  "a list that holds itself twice, again and again":
    "{% set n = namespace(t=[1]) %}{% for i in range(60) %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ n.t | tojson }}",
  "a macro that calls itself": "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
  "a macro that doubles":
    "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
};

describe("BoundedTemplate", () => {
  for (const [name, text] of Object.entries(BOMBS)) {
    test(`refuses ${name} within the time limit`, () => {
      const before = process.cpuUsage();
      assert.throws(() => render(text));
      const { user, system } = process.cpuUsage(before);
      const tookMs = (user + system) / 1_000;
      assert.ok(tookMs < REFUSED_WITHIN_MS, `${tookMs} ms`);
    });
  }

  test("refuses templates that are too long, nest too deeply or use unsupported statements", () => {
    assert.throws(() => render("x".repeat(300_000)), TemplateLimitError);
    assert.throws(() => render(nested(9_000)));
    for (const text of [
      "{% include 'other' %}",
      "{% import 'x' as y %}",
      "{% extends 'x' %}",
      "{{",
      "{% for %}",
    ]) {
      assert.throws(() => render(text), text);
    }
  });

  test("provides the global functions and constants that templates of models use", () => {
    assert.equal(
      render("{% for i in range(2, 8, 3) %}{{ i }}{% endfor %}{{ true and none is none }}"),
      "25true",
    );
    assert.equal(render("{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}"), "321");
    assert.throws(() => render("{{ raise_exception('no tools') }}"), /no tools/);
  });

  test("renders a long conversation", () => {
    const messages = Array.from(
      { length: 2_000 },
      (_, i): ChatMessage => ({
        role: i % 2 === 0 ? "user" : "assistant",
        content: `${i} ${"word ".repeat(200)}`,
      }),
    );
    for (const template of [CHATML_TEMPLATE, FORGETFUL_TEMPLATE]) {
      assert.ok(render(template, messages).length > 2_000_000);
    }
  });
});

describe("a tokenizer with a bad chat template", () => {
  test("is refused when its renderer is made", () => {
    for (const bomb of Object.values(BOMBS)) {
      if (bomb.includes("macro f(n) %}{{ f(n)")) continue; // overflows the stack, which counts as an ordinary template error
      assert.throws(() => new ChatRenderer(chatmlTokenizer(bomb)), ChatTemplateError, bomb);
    }
    assert.throws(() => new ChatRenderer(chatmlTokenizer(nested(9_000))), ChatTemplateError);
  });

  test("with any bytes is refused or renders", () => {
    const template = fc.oneof(
      fc.string({ unit: "binary", maxLength: 100 }),
      ...[CHATML_TEMPLATE, FORGETFUL_TEMPLATE].map((text) =>
        damaged(Buffer.from(text)).map((bytes) => Buffer.from(bytes).toString("utf8")),
      ),
    );
    fc.assert(
      fc.property(template, (text) => {
        try {
          const { text: shown } = new ChatRenderer(chatmlTokenizer(text)).render([
            { role: "user", content: "Hello" },
          ]);
          assert.equal(typeof shown, "string");
        } catch (error) {
          assert.ok(error instanceof ChatTemplateError, String(error));
        }
      }),
      fuzz(300),
    );
  });
});
