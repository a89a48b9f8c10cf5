/** Reads servers' answers: events that are cut anywhere, the fields of every release, and invalid answers. */

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "@hone/core";
import { ServerGoneError, ServerRefusedError } from "../domain/errors.ts";
import { readEvents } from "./http/read-events.ts";
import { probeScoring } from "./probe-scoring.ts";
import { SglangChunks } from "./sglang/sglang-chunks.ts";
import { readCompletionChunk } from "./vllm/vllm-chunk.ts";

describe("readEvents()", () => {
  test("gives the same data wherever the bytes are split", async () => {
    const events = ['{"a":"ä€😀"}', "[DONE]", "two\nlines"];
    const text = `: a comment\r\n\r\ndata: ${events[0]}\n\ndata:${events[1]}\r\n\r\nevent: x\ndata: two\ndata: lines\n\n`;
    const bytes = Buffer.from(text);
    const random = new Random(3);
    for (let round = 0; round < 50; round++) {
      const parts: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + random.nextInt(9);
        parts.push(bytes.subarray(at, at + size));
        at += size;
      }
      const found: string[] = [];
      for await (const data of readEvents(from(parts))) found.push(data);
      assert.deepEqual(found, events);
    }
  });
});

describe("readCompletionChunk()", () => {
  const logprobs = {
    tokens: ["token_id:5", "token_id:6"],
    token_logprobs: [-0.5, -1],
    top_logprobs: [{ "token_id:5": -0.5, "token_id:9": -9999 }, { "token_id:6": -1 }],
  };
  const read = (event: object) => readCompletionChunk("vLLM", event);

  test("reads ids from token_ids, or from the fields of older releases", () => {
    const wanted = {
      tokenIds: [5, 6],
      logprobs: [-0.5, -1],
      topLogprobs: [[{ tokenId: 5, logprob: -0.5 }], [{ tokenId: 6, logprob: -1 }]],
    };
    assert.deepEqual(read({ choices: [{ token_ids: [5, 6], logprobs, finish_reason: null }] }), wanted);
    assert.deepEqual(read({ choices: [{ logprobs, finish_reason: "stop" }] }), { ...wanted, end: "stop" });
  });

  test("reads the count of cached tokens if there is one, and returns undefined for an event without choices", () => {
    const usage = { prompt_tokens_details: { cached_tokens: 4 } };
    assert.deepEqual(read({ choices: [], usage }), { tokenIds: [], logprobs: [], cachedTokens: 4 });
    assert.equal(read({ choices: [] }), undefined);
  });

  test("refuses failures, and events that vLLM does not send", () => {
    for (const event of [
      { error: { message: "dead", code: 500 } },
      { choices: [{ token_ids: [1], logprobs: null }] },
      { choices: [{ token_ids: [-1], logprobs: { token_logprobs: [0] } }] },
      { choices: [{ token_ids: [1], logprobs: { token_logprobs: [null] } }] },
      { choices: [{ token_ids: [], logprobs: null, finish_reason: "tired" }] },
      { choices: [{ logprobs: { tokens: ["Hello"], token_logprobs: [0] } }] },
      {},
    ]) {
      assert.throws(() => read(event), ServerRefusedError, JSON.stringify(event));
    }
  });
});

describe("SglangChunks", () => {
  const triples = [
    [-0.5, 5, null],
    [-1, 6, null],
    [-2, 7, null],
  ];
  const event = (list: unknown[], count: number, meta: object = {}) => ({
    meta_info: { completion_tokens: count, output_token_logprobs: list, finish_reason: null, ...meta },
  });

  test("reads chunks with all tokens so far, and chunks with only the new ones", () => {
    for (const second of [triples, triples.slice(1)]) {
      const chunks = new SglangChunks("SGLang", false);
      assert.deepEqual(chunks.read(event(triples.slice(0, 1), 1)).tokenIds, [5]);
      assert.deepEqual(chunks.read(event(second, 3)), { tokenIds: [6, 7], logprobs: [-1, -2] });
      const end = { finish_reason: { type: "length", length: 3 } };
      assert.deepEqual(chunks.read(event([], 3, end)), { tokenIds: [], logprobs: [], end: "length" });
    }
  });

  test("reads the labels of spans, or one label of all tokens if there are no spans", () => {
    const spans = [
      { version: "a", start: 0, end: 2 },
      { version: "b", start: 2, end: 3 },
    ];
    const labels = (meta: object) => new SglangChunks("SGLang", true).read(event(triples, 3, meta)).labels;
    assert.deepEqual(labels({ weight_versions: spans, weight_version: "b" }), [
      { label: "a", tokenCount: 2 },
      { label: "b", tokenCount: 1 },
    ]);
    assert.deepEqual(labels({ weight_version: "b" }), [{ label: "b", tokenCount: 3 }]);
    assert.equal(
      new SglangChunks("SGLang", false).read(event(triples, 3, { weight_version: "b" })).labels,
      undefined,
    );
  });

  test("reads an abort before the first token without logprobs, and an abort with a status as a failure", () => {
    const read = (reason: object) =>
      new SglangChunks("SGLang", true).read({ meta_info: { completion_tokens: 0, finish_reason: reason } });
    assert.deepEqual(read({ type: "abort", message: "Abort before prefill" }), {
      tokenIds: [],
      logprobs: [],
      end: "abort",
    });
    assert.throws(() => read({ type: "abort", message: "x", status_code: 400 }), ServerRefusedError);
    assert.throws(() => read({ type: "abort", message: "x", status_code: 503 }), ServerGoneError);
  });
});

describe("probeScoring()", () => {
  /** The logits of three tokens. */
  const probe = (logits: readonly number[], scoring: "processed" | "tempered" | "raw") =>
    probeScoring(
      {
        async *generate({ sampling: { temperature, topK, topLogprobs = 0 } }) {
          const sorted = logits.toSorted((a, b) => b - a);
          const scale = scoring === "raw" ? 1 : temperature;
          const all = scoring === "processed" ? sorted.slice(0, topK) : sorted;
          const total = Math.log(all.reduce((sum, logit) => sum + Math.exp(logit / scale), 0));
          const told = all.map((logit, tokenId) => ({ tokenId, logprob: logit / scale - total }));
          // The last of the kept tokens is drawn.
          const { tokenId, logprob } = told[topK - 1]!;
          yield { tokenIds: [tokenId], logprobs: [logprob], topLogprobs: [told.slice(0, topLogprobs)] };
        },
      },
      { kind: "whole", label: "", folder: "" },
      AbortSignal.timeout(1_000),
    );

  test("recognizes the distributions, with flat and with peaked models", async () => {
    for (const logits of [
      [0.1, 0.2, 0.3],
      [0, 0, 9],
      [5, -5, 1],
    ]) {
      for (const scoring of ["processed", "tempered", "raw"] as const) {
        assert.equal(await probe(logits, scoring), scoring, logits.join());
      }
    }
  });
});

async function* from<T>(values: readonly T[]): AsyncGenerator<T> {
  yield* values;
}
