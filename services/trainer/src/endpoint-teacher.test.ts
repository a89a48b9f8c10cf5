import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import { BoundKeys, type RunConfig } from "@hone/config";
import { RemoteUnavailableError, TerminalError } from "@hone/core";
import type { TrainingSample } from "@hone/train";
import { EndpointTeacher, teacherKeyProblems } from "./endpoint-teacher.ts";
import { testConfig } from "./testing/fake-run.ts";

const SAMPLES: readonly TrainingSample[] = [
  { tokenIds: [5, 6, 7, 8], lossMask: [0, 1, 0, 1], weights: [0, 0] },
  { tokenIds: Uint32Array.of(5, 9), lossMask: Uint8Array.of(0, 1), weights: [0] },
];

/** What vLLM answers to `echo` with `logprobs: 0`: minus a tenth of each id, none for the first token, and one new token. */
function completion(prompt: readonly number[]): unknown {
  const logprobs = [null, ...prompt.slice(1).map((id) => -id / 10), -0.5];
  return { choices: [{ index: 0, text: "", logprobs: { tokens: [], token_logprobs: logprobs } }] };
}

describe("EndpointTeacher", () => {
  let server: Server;
  let asked: { path: string | undefined; key: string | undefined; body: Record<string, unknown> }[];
  let answers: ((prompt: readonly number[]) => { status: number; body: unknown })[];
  beforeEach(async () => {
    asked = [];
    answers = [];
    server = createServer(async (request, response) => {
      let text = "";
      for await (const part of request) text += String(part);
      const body = JSON.parse(text) as { prompt: number[] };
      asked.push({ path: request.url, key: request.headers.authorization, body });
      const { status, body: answer } = answers.shift()?.(body.prompt) ?? {
        status: 200,
        body: completion(body.prompt),
      };
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  const endpointOf = (keyVariable?: string) => ({
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/`,
    model: "big",
    concurrency: 1,
    ...(keyVariable !== undefined && { keyVariable }),
  });
  const score = async (keyVariable?: string, keys = BoundKeys.none) => {
    const teacher = new EndpointTeacher(endpointOf(keyVariable), keys);
    try {
      return (await teacher.logprobs(SAMPLES)).map((values) => [...values]);
    } finally {
      await teacher.close();
    }
  };

  test("asks for the prompt's own log-probabilities and takes those of the trained tokens", async () => {
    assert.deepEqual(await score(), [[...Float32Array.of(-0.6, -0.8)], [...Float32Array.of(-0.9)]]);
    const request = { model: "big", echo: true, logprobs: 0, max_tokens: 1, temperature: 1 };
    assert.deepEqual(asked, [
      { path: "/v1/completions", key: undefined, body: { ...request, prompt: [5, 6, 7, 8] } },
      { path: "/v1/completions", key: undefined, body: { ...request, prompt: [5, 9] } },
    ]);
  });

  test("sends a key to the hosts that it is bound to and is refused at admission elsewhere", async () => {
    const environment = { HONE_TEACHER_KEY: "secret", HONE_TEACHER_KEY_HOSTS: "127.0.0.1" };
    const keys = new BoundKeys("HONE_TEACHER_KEY", environment, "the trainer");
    await score("HONE_TEACHER_KEY", keys);
    assert.deepEqual(new Set(asked.map(({ key }) => key)), new Set(["Bearer secret"]));
    const config = (baseUrl: string): RunConfig =>
      testConfig({
        algorithm: {
          distillation: {
            teachers: [{ endpoint: { baseUrl, model: "big", keyVariable: "HONE_TEACHER_KEY" } }],
          },
        },
      });
    assert.deepEqual(teacherKeyProblems(config("http://127.0.0.1:1/v1"), keys), []);
    const [problem] = teacherKeyProblems(config("https://elsewhere.example/v1"), keys);
    assert.equal(problem?.key, "algorithm.distillation.teachers[0].endpoint.keyVariable");
    assert.match(problem.message, /may be sent to \/\/127.0.0.1 only/);
  });

  test("asks again while the server is busy", async () => {
    answers = [() => ({ status: 503, body: {} })];
    assert.equal((await score()).length, 2);
    assert.equal(asked.length, 3);
  });

  const failures: [
    what: string,
    answer: unknown,
    status: number,
    error: typeof TerminalError | typeof RemoteUnavailableError,
    message: RegExp,
  ][] = [
    [
      "a model that the server does not have",
      { message: "no model big" },
      404,
      TerminalError,
      /status 404.*no model big/,
    ],
    [
      "no scores of the prompt",
      { choices: [{ text: "", logprobs: { token_logprobs: [-1] } }] },
      200,
      RemoteUnavailableError,
      /the 4 tokens of its prompt, and gave 1/,
    ],
    [
      "a gap",
      { choices: [{ logprobs: { token_logprobs: [null, null, -1, -1, -1] } }] },
      200,
      RemoteUnavailableError,
      /no log-probability of token 1/,
    ],
  ];
  for (const [what, body, status, error, message] of failures) {
    test(`says what is wrong with ${what}`, { timeout: 30_000 }, async () => {
      answers = Array.from({ length: 10 }, () => () => ({ status, body }));
      await assert.rejects(
        score(),
        (thrown) => thrown instanceof error && message.test((thrown as Error).message),
      );
    });
  }
});
