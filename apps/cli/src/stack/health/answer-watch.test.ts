import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { watchAnswers } from "./answer-watch.ts";
import { answersHttp, answersNats, answersPostgres } from "./probes.ts";

const SERVER = `require("node:http").createServer((_, response) => response.end("{}"))
  .listen(0, "127.0.0.1", function () { console.log(this.address().port); });`;

describe("watchAnswers()", () => {
  test("reports a stopped process with the time of its last answer, and its return", async () => {
    const child = spawn(process.execPath, ["-e", SERVER], { stdio: ["ignore", "pipe", "inherit"] });
    const ended = new AbortController();
    try {
      const [line] = await once(child.stdout, "data");
      const port = Number(String(line));
      const reported: Readonly<Record<string, number>>[] = [];
      let looks = 0;
      const watching = watchAnswers({
        probes: () => ({ server: () => answersHttp(port).finally(() => looks++) }),
        onChange: (silent) => void reported.push(silent),
        signal: ended.signal,
        lookEveryMs: 5,
      });
      await eventually("an answer", () => looks > 1);
      assert.deepEqual(reported, []);
      const stoppedMs = Date.now();
      process.kill(child.pid!, "SIGSTOP");
      await eventually("the silence", () => reported.length === 1);
      const { server = 0 } = reported[0] ?? {};
      assert.ok(Math.abs(server - stoppedMs) < 1_000, `silent since ${server}, stopped at ${stoppedMs}`);
      process.kill(child.pid!, "SIGCONT");
      await eventually("the return", () => reported.length === 2);
      assert.deepEqual(reported[1], {});
      ended.abort();
      await watching;
    } finally {
      ended.abort();
      child.kill("SIGKILL");
    }
  });
});

describe("probes", () => {
  test("a port that accepts connections and sends nothing counts as silent", async () => {
    const server = createServer(() => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    const url = `127.0.0.1:${address.port}`;
    const answers = await Promise.all([
      answersHttp(address.port),
      answersNats(`nats://${url}`),
      answersPostgres(`postgres://user:password@${url}/hone`),
    ]);
    assert.deepEqual(answers, [false, false, false]);
    server.close();
  });
});
