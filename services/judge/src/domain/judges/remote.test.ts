import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { parseJudges } from "@hone/config";
import { judgeKeys } from "../../judge-keys.ts";
import { assemblePanel } from "../panel.ts";
import { scoreGroup } from "../score-group.ts";
import { answered, judgementOf, judgeParts } from "../testing.ts";

/** A request that the server got. */
interface Asked {
  readonly url: string | undefined;
  readonly authorization: string | undefined;
  readonly body: Record<string, unknown>;
}

describe("judges that call a server", () => {
  let server: Server;
  let origin: string;
  let asked: Asked[] = [];
  let answers: ((response: ServerResponse) => void)[] = [];

  before(async () => {
    server = createServer((request, response) => void handle(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    asked.push({ url: request.url, authorization: request.headers.authorization, body });
    (answers.length > 1 ? answers.shift() : answers[0])?.(response);
  }
  const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value));
  const status = (code: number) => (response: ServerResponse) => void response.writeHead(code).end("busy");
  const silence = () => undefined;
  /** Sets how the server answers the next requests, in order; it repeats the last answer. */
  const script = (...next: typeof answers) => {
    asked = [];
    answers = next;
  };

  const keysFor = (hosts: string) => judgeKeys({ HONE_JUDGE_KEY: "secret", HONE_JUDGE_KEY_HOSTS: hosts });

  describe("http", () => {
    const judge = () => ({ kind: "http", url: `${origin}/score`, deadlineMs: 300, maxAttempts: 3 });

    test("posts the input that a module gets and reads the result that a module returns", async () => {
      script(json({ score: 0.5, length: 7 }));
      const word = await judgementOf(
        { ...judge(), keyVariable: "HONE_JUDGE_KEY" },
        answered("4", "4"),
        judgeParts({ keys: keysFor("127.0.0.1") }),
      );
      assert.deepEqual(word, { value: 0.5, metrics: { length: 7 }, turnRewards: [] });
      assert.equal(asked[0]?.authorization, "Bearer secret");
      assert.deepEqual(asked[0]?.body, {
        dataSource: "sums",
        solution: "4",
        groundTruth: "4",
        extraInfo: { index: 3 },
        metadata: { answer: "four" },
        turns: [{ prompt: "2+2?", response: "4" }],
        environmentReturn: 0,
        roleRewards: {},
      });
    });

    test("repeats the request after a temporary error and after silence", async () => {
      script(status(503), silence, json(1));
      assert.equal((await judgementOf(judge(), answered("4"))).value, 1);
      assert.equal(asked.length, 3);
    });

    test("fails after its last attempt, and at once after an error that is not temporary", async () => {
      script(status(500));
      await assert.rejects(judgementOf(judge(), answered("4")), /answered with status 500: busy/);
      assert.equal(asked.length, 3);
      script(status(404));
      await assert.rejects(judgementOf(judge(), answered("4")), /answered with status 404/);
      assert.equal(asked.length, 1);
      script(json("good"));
      await assert.rejects(judgementOf(judge(), answered("4")), /a number or \{ score/);
    });

    test("refuses an endless answer without reading all of it", async () => {
      script((response) => {
        const send = () => {
          while (!response.destroyed && response.write(" ".repeat(65_536)));
        };
        response.on("drain", send);
        send();
      });
      await assert.rejects(
        judgementOf({ ...judge(), deadlineMs: 20_000 }, answered("4")),
        /answers with more than 4194304 bytes/,
      );
      assert.equal(asked.length, 1);
    });

    test("refuses a key that is not set when the judge is made", () =>
      assert.rejects(
        judgementOf({ ...judge(), keyVariable: "HONE_JUDGE_KEY_X" }, answered("4")),
        /HONE_JUDGE_KEY_X, which is not set for/,
      ));

    test("sends a key only to the hosts that it is bound to, and follows no redirect", async () => {
      const keyed = { ...judge(), keyVariable: "HONE_JUDGE_KEY" };
      for (const hosts of ["", "api.example.com", "127.0.0.1:1"]) {
        await assert.rejects(
          judgementOf(keyed, answered("4"), judgeParts({ keys: keysFor(hosts) })),
          /HONE_JUDGE_KEY .*add 127\.0\.0\.1:\d+ to HONE_JUDGE_KEY_HOSTS of the judge/,
        );
      }
      script((response) => void response.writeHead(307, { location: `${origin}/elsewhere` }).end("moved"));
      await assert.rejects(
        judgementOf(keyed, answered("4"), judgeParts({ keys: keysFor("127.0.0.1") })),
        /307/,
      );
      assert.deepEqual(
        asked.map(({ url }) => url),
        ["/score"],
      );
    });

    test("refuses variables that are not keys of judges", () => {
      const parsed = parseJudges([{ ...judge(), keyVariable: "HONE_DATABASE_URL" }]);
      assert.equal(parsed.kind, "problems");
    });
  });

  describe("llm", () => {
    const judge = (more: object = {}) => ({
      kind: "llm",
      baseUrl: `${origin}/v1/`,
      model: "grader",
      rubric: "Right sums are good.",
      deadlineMs: 1_000,
      maxAttempts: 2,
      price: { input: 2, output: 10 },
      ...more,
    });
    const grade = (content: string) =>
      json({ choices: [{ message: { content } }], usage: { prompt_tokens: 100, completion_tokens: 20 } });

    test("scales the grade to [0, 1] and computes its cost", async () => {
      script(grade("Right.\nScore: 7"));
      const word = await judgementOf(judge(), answered("it is 4", "4"));
      assert.equal(word.value, 0.7);
      assert.deepEqual(word.metrics, { cached: 0, input_tokens: 100, output_tokens: 20, cost: 0.0004 });
      const [{ url, body } = {}] = asked;
      assert.equal(url, "/v1/chat/completions");
      assert.equal(body?.model, "grader");
      const prompt = JSON.stringify(body?.messages);
      for (const part of ["Right sums are good.", "2+2?", "it is 4", "<reference>\\\\n4"]) {
        assert.ok(prompt.includes(part.replace("\\\\", "\\")), part);
      }
    });

    test("asks once for equal answers, even while the first request is under way", async () => {
      script(grade("**Score:** 10"));
      const parsed = parseJudges([judge()]);
      assert.ok(parsed.kind === "judges");
      const [member] = (await assemblePanel(parsed.judges, judgeParts())).judges;
      assert.ok(member !== undefined);
      const context = { signal: new AbortController().signal };
      const ask = async (text: string) => {
        const word = await member.judge(answered(text), context);
        return typeof word === "number" ? word : [word.value, word.metrics?.cached, word.metrics?.cost];
      };
      const words = await Promise.all([ask("4"), ask("4"), ask("5")]);
      assert.deepEqual(words, [
        [1, 0, 0.0004],
        [1, 1, 0],
        [1, 0, 0.0004],
      ]);
      assert.equal(asked.length, 2);
    });

    test("asks again if the answer has no grade, and then fails", async () => {
      script(grade("No idea."), grade("Score: 5"));
      assert.equal((await judgementOf(judge(), answered("4"))).value, 0.5);
      script(grade("Score: 11"));
      await assert.rejects(judgementOf(judge(), answered("4")), /N from 0 to 10/);
      assert.equal(asked.length, 2);
    });
  });

  describe("group", () => {
    const judge = { kind: "group", baseUrl: "", model: "ranker", rubric: "Short is good.", maxAttempts: 2 };
    const rank = async (answers: readonly string[]) => {
      const parsed = parseJudges([{ ...judge, baseUrl: `${origin}/v1` }]);
      assert.ok(parsed.kind === "judges", JSON.stringify(parsed));
      const panel = await assemblePanel(parsed.judges, judgeParts());
      const episodes = answers.map((answer) => answered(answer, "4"));
      return scoreGroup(episodes, panel, { signal: new AbortController().signal });
    };
    /** Ranks by length, as a model would by the rubric. */
    const byLength = (response: ServerResponse) => {
      const prompt = JSON.stringify(asked.at(-1)?.body.messages);
      const answers = [...prompt.matchAll(/<answer number=\\"(\d+)\\">\\n(.*?)\\n<\/answer>/g)];
      const ranked = answers.sort((a, b) => a[2]!.length - b[2]!.length).map((match) => match[1]);
      const content = `Because.\nRanking: ${ranked.join(" > ")}`;
      const usage = { prompt_tokens: 300, completion_tokens: 30 };
      response.end(JSON.stringify({ choices: [{ message: { content } }], usage }));
    };

    test("ranks all answers of a group by one call, in any order", async () => {
      script(byLength);
      const verdict = await rank(["333", "1", "4444", "22"]);
      assert.ok(verdict.kind === "scored", JSON.stringify(verdict));
      const values = verdict.scores.map(([score]) => score?.value);
      assert.deepEqual(values, [1 / 3, 1, 0, 2 / 3]);
      assert.equal(asked.length, 1);
      assert.equal(verdict.scores[0]?.[0]?.metrics.input_tokens, 75);
    });

    test("asks again if the ranking leaves an answer out, and then fails for the whole group", async () => {
      script(json({ choices: [{ message: { content: "Ranking: 1 > 2" } }] }));
      const verdict = await rank(["a", "b", "c"]);
      assert.ok(verdict.kind === "failed");
      assert.match(verdict.reason, /the judge "group" failed.*every answer once/);
      assert.equal(asked.length, 2);
    });
  });
});
