/** Every dialect reads any body, or says what is wrong with it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ApiRequestError } from "@hone/service-kit";
import { badJson, withInputs } from "@hone/testing/fuzz";
import { checksOf, demandsOf } from "../../domain/sessions/demands.ts";
import { MAX_CALLS_AT_ONCE } from "../../domain/sessions/session-call.ts";
import type { Dialect } from "./dialect.ts";
import { DIALECTS } from "./dialects.ts";
import { NO_HISTORY } from "./testing.ts";

const parameters = { type: "object", properties: { q: { type: "string" } } };
const common = { model: "m", temperature: 0.5, top_p: 0.9, stream: true };

/** A body with every parameter that is read, for each dialect. */
const VALID: Readonly<Record<Dialect["path"], object>> = {
  "/v1/chat/completions": {
    ...common,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Hi" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"q":"x"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "found" },
    ],
    tools: [{ type: "function", function: { name: "f", description: "Finds", parameters } }],
    tool_choice: { type: "function", function: { name: "f" } },
    stop: ["."],
    seed: 1,
    n: 3,
    response_format: { type: "json_schema", json_schema: { name: "f", schema: parameters, strict: true } },
    max_tokens: 3,
    stream_options: { include_usage: true },
  },
  "/v1/messages": {
    ...common,
    system: [{ type: "text", text: "Be brief." }],
    max_tokens: 3,
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "f", input: { q: "x" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "found" }] },
    ],
    tools: [{ name: "f", description: "Finds", input_schema: parameters }],
    tool_choice: { type: "tool", name: "f" },
    stop_sequences: ["."],
    thinking: { type: "disabled" },
    output_config: { format: { type: "json_schema", schema: parameters } },
  },
  "/v1/responses": {
    ...common,
    instructions: "Be brief.",
    input: [
      { role: "user", content: [{ type: "input_text", text: "Hi" }] },
      { type: "function_call", call_id: "c1", name: "f", arguments: '{"q":"x"}' },
      { type: "function_call_output", call_id: "c1", output: "found" },
    ],
    tools: [{ type: "function", name: "f", description: "Finds", parameters, strict: null }],
    tool_choice: { type: "function", name: "f" },
    max_output_tokens: 3,
    text: { format: { type: "json_schema", name: "f", schema: parameters, strict: true } },
  },
};

describe("any body", () => {
  for (const dialect of DIALECTS) {
    test(`is read by ${dialect.path}, or refused with the parameter that is wrong`, async () => {
      const valid = VALID[dialect.path];
      assert.ok(valid !== undefined, "a dialect without a body to start from");
      assert.ok(dialect.parse(JSON.stringify(valid), NO_HISTORY).request.messages.length > 1);
      await withInputs(badJson(valid), 500, async (bodies) => {
        let refused = 0;
        for (const body of bodies) {
          try {
            const { request } = dialect.parse(body, NO_HISTORY);
            assert.ok(request.messages.length > 0, body);
            assert.ok(request.numAnswers >= 1 && request.numAnswers <= MAX_CALLS_AT_ONCE, body);
            // Whatever was accepted can be told to the model, and an answer to it can be checked.
            for (const { text } of demandsOf(request)) assert.ok(text.length > 0, body);
            checksOf(request, { text: "[1]", calls: [] });
            for (const { role, content } of request.messages) {
              assert.ok(["system", "user", "assistant", "tool"].includes(role), body);
              assert.equal(typeof content, "string", body);
            }
          } catch (error) {
            if (!(error instanceof ApiRequestError))
              throw new Error(`at ${body.slice(0, 500)}`, { cause: error });
            assert.ok(error.message.includes(error.param ?? "body"), error.message);
            refused++;
          }
        }
        assert.ok(refused > bodies.length / 2);
      });
    });
  }
});
