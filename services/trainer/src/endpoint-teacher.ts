/**
 * A teacher behind an OpenAI-compatible completions API that takes token ids and scores its prompt (vLLM, SGLang):
 *
 *   POST <baseUrl>/completions {"prompt": [ids], "echo": true, "logprobs": 0, "max_tokens": 1}
 *   choices[0].logprobs.token_logprobs: [null, log p(token 1), ...]   one per token of the prompt, then the new one's
 */

import type { BoundKeys, RunConfig, TeacherEndpoint } from "@hone/config";
import { InvalidInputError, type JsonCall, jsonCall, RemoteUnavailableError } from "@hone/core";
import { sampledTokenCount } from "@hone/rl";
import { counterOf, Instrument } from "@hone/telemetry";
import type { TrainingSample } from "@hone/train";
import { z } from "zod";
import type { Problem } from "./domain/report/run-event.ts";
import type { Teacher } from "./domain/teachers/teacher.ts";

/** A request waits in the server's queue. */
const DEADLINE_MS = 300_000;
const MAX_ATTEMPTS = 5;
/** Texts and numbers of a prompt of a million tokens. */
const MAX_ANSWER_BYTES = 256 * 2 ** 20;

const retries = counterOf(Instrument.retries).of({ part: "teacher" });

const answerSchema = z.looseObject({
  choices: z
    .array(z.looseObject({ logprobs: z.looseObject({ token_logprobs: z.array(z.number().nullable()) }) }))
    .min(1),
});

export class EndpointTeacher implements Teacher {
  readonly #endpoint: TeacherEndpoint;
  readonly #call: JsonCall;
  readonly #closed = new AbortController();

  /** @throws {InvalidInputError} when the key is not set, or may not be sent to the address. */
  constructor(endpoint: TeacherEndpoint, keys: BoundKeys) {
    this.#endpoint = endpoint;
    this.#call = jsonCall(addressOf(endpoint), {
      deadlineMs: DEADLINE_MS,
      maxAttempts: MAX_ATTEMPTS,
      concurrency: endpoint.concurrency,
      maxAnswerBytes: MAX_ANSWER_BYTES,
      key: keyOf(endpoint, keys),
      onRetry: () => retries.add(),
    });
  }

  /**
   * At temperature 1: a run file with another one is refused.
   * @throws {RemoteUnavailableError} when the server is away.
   */
  logprobs(samples: readonly TrainingSample[]): Promise<readonly Float32Array[]> {
    return Promise.all(samples.map((sample) => this.#score(sample)));
  }

  async close(): Promise<void> {
    this.#closed.abort();
  }

  #score(sample: TrainingSample): Promise<Float32Array> {
    const { model } = this.#endpoint;
    const prompt = Array.from(sample.tokenIds);
    const asked = { model, prompt, echo: true, logprobs: 0, max_tokens: 1, temperature: 1 };
    const url = addressOf(this.#endpoint);
    return this.#call(asked, (answer) => readLogprobs(answer, sample, url), this.#closed.signal);
  }
}

/** The problems of a run whose teachers need keys that may not be sent to them. */
export function teacherKeyProblems({ algorithm }: RunConfig, keys: BoundKeys): Problem[] {
  return (algorithm.distillation?.teachers ?? []).flatMap(({ endpoint }, index) => {
    if (endpoint === undefined) return [];
    try {
      keyOf(endpoint, keys);
      return [];
    } catch (error) {
      if (!(error instanceof InvalidInputError)) throw error;
      const key = `algorithm.distillation.teachers[${index}].endpoint.keyVariable`;
      const valueJson = JSON.stringify(endpoint.keyVariable);
      return [{ key, valueJson, allowed: error.allowed, message: error.message }];
    }
  });
}

/** The key that is sent; undefined = none. @throws {InvalidInputError} as {@link EndpointTeacher} does. */
function keyOf(endpoint: TeacherEndpoint, keys: BoundKeys): string | undefined {
  const { keyVariable } = endpoint;
  const path = "algorithm.distillation.teachers.endpoint.keyVariable";
  return keyVariable === undefined ? undefined : keys.keyFor(keyVariable, addressOf(endpoint), path);
}

function addressOf({ baseUrl }: TeacherEndpoint): string {
  return `${baseUrl.replace(/\/+$/, "")}/completions`;
}

/** [N] the log-probabilities of the sample's trained tokens. */
function readLogprobs(answer: unknown, sample: TrainingSample, url: string): Float32Array {
  const all = answerSchema.safeParse(answer).data?.choices[0]?.logprobs.token_logprobs;
  const { length } = sample.tokenIds;
  if (all === undefined || all.length < length) {
    const found = all === undefined ? "none" : String(all.length);
    throw new RemoteUnavailableError(
      `${url} must give the log-probabilities of the ${length} tokens of its prompt, and gave ${found}; it must support "echo" with "logprobs"`,
    );
  }
  const logprobs = new Float32Array(sampledTokenCount(sample));
  let next = 0;
  for (let at = 0; at < length; at++) {
    if (sample.lossMask[at] !== 1) continue;
    const value = all[at];
    if (typeof value !== "number") {
      throw new RemoteUnavailableError(`${url} gave no log-probability of token ${at} of a prompt`);
    }
    logprobs[next++] = value;
  }
  return logprobs;
}
