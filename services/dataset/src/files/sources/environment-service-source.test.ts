import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { BoundKeys } from "@hone/config";
import { RetryableError, readText } from "@hone/core";
import { silentLogger } from "@hone/telemetry";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { overlapOf } from "../../domain/source-spec.ts";
import { SourceError } from "../../errors.ts";
import { decodeSource } from "../../nats/decode-source.ts";
import { RowFiles } from "../row-files.ts";
import { offlineHub } from "../testing/offline-hub.ts";
import { TaskLists } from "./environment-service-source.ts";
import { openSource, type SourceParts } from "./open-source.ts";

interface Asked {
  readonly path: string | undefined;
  readonly authorization: string | undefined;
  readonly body: { readonly env_type: string; readonly params: Readonly<Record<string, unknown>> };
}

describe("the source environment_service", () => {
  let folder: TemporaryFolder;
  let server: Server;
  let url: string;
  const asked: Asked[] = [];
  /** What the server answers. */
  let reply: { readonly status: number; readonly text: string };
  before(async () => {
    folder = await temporaryFolder("environment-service");
    server = createServer(async (request, response) => {
      const body = JSON.parse(await readText({ body: request }, 100_000)) as Asked["body"];
      asked.push({ path: request.url, authorization: request.headers.authorization, body });
      response.writeHead(reply.status).end(reply.text);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await folder[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    asked.length = 0;
    reply = { status: 200, text: JSON.stringify({ success: true, data: ["a", 7, "c"] }) };
  });
  const partsOf = (environment: Record<string, string> = {}): SourceParts => ({
    files: new RowFiles({ root: folder.path, cacheFolder: `${folder.path}/cache`, logger: silentLogger() }),
    hub: offlineHub({ root: folder.path }),
    keys: new BoundKeys("HONE_DATASET_KEY", environment, "the dataset service"),
    taskLists: new TaskLists(),
  });
  const specOf = (changes: object = {}) =>
    decodeSource({ source: "environment_service", url, envType: "words", ...changes });

  test("gives the tasks that the server lists, each with its place as the seed", async () => {
    const order = await openSource(specOf({ config: { maxSteps: 3, params: { level: 2 } } }), partsOf());
    assert.equal(order.size, 3);
    const tasks = await order.take({ runSeed: 1, cursor: 1, count: 2, isShuffled: false });
    const config = { url, maxSteps: 3, params: { level: 2 }, envType: "words" };
    assert.deepEqual(
      tasks.map(
        (task) => task.kind === "environment" && { ...task, configJson: JSON.parse(task.configJson) },
      ),
      [
        ["7", 1],
        ["c", 2],
      ].map(([taskId, seed]) => ({
        kind: "environment",
        id: `words:${taskId}`,
        environment: "environment_service",
        seed,
        configJson: { ...config, taskId },
      })),
    );
    const [{ path, body } = assert.fail()] = asked;
    assert.equal(path, "/get_env_profile");
    assert.deepEqual([body.env_type, body.params], ["words", { split: "train", level: 2 }]);
  });

  test("asks once for all batches of a list, again for another split, and again when a run begins", async () => {
    const parts = partsOf();
    await Promise.all([openSource(specOf(), parts), openSource(specOf(), parts)]);
    await openSource(specOf(), parts);
    assert.equal(asked.length, 1);
    await openSource(specOf({ split: "test" }), parts);
    assert.equal(asked.length, 2);
    parts.taskLists?.clear();
    await openSource(specOf(), parts);
    assert.equal(asked.length, 3);
  });

  test("a list that cannot be fetched is asked for again later", async () => {
    const parts = partsOf();
    for (const text of ["", "Traceback"]) {
      reply = { status: 500, text };
      await assert.rejects(openSource(specOf(), parts), RetryableError);
    }
    reply = { status: 200, text: '{"task_ids":["a"]}' };
    assert.equal((await openSource(specOf(), parts)).size, 1);
    await assert.rejects(openSource(specOf({ url: "http://127.0.0.1:1" }), parts), RetryableError);
  });

  for (const [what, text, problem] of [
    ["an empty list", '{"success":true,"data":[]}', /listed no task/],
    ["a task twice", '{"success":true,"data":["a","b","a"]}', /listed "a" twice/],
    ["no list", '{"success":true,"data":{"a":1}}', /must answer with/],
    ["no success", '{"success":false,"data":["a"],"message":"unknown"}', /unknown/],
    ["no JSON", "<html>", /must answer with/],
  ] as const) {
    test(`refuses ${what}`, async () => {
      reply = { status: 200, text };
      await assert.rejects(openSource(specOf(), partsOf()), (error: unknown) => {
        assert.ok(error instanceof SourceError);
        assert.match(error.message, problem);
        return true;
      });
    });
  }

  test("sends a key only to the hosts that it is bound to", async () => {
    const spec = specOf({ keyVariable: "HONE_DATASET_KEY_GAMES" });
    await assert.rejects(openSource(spec, partsOf({ HONE_DATASET_KEY_GAMES: "secret" })), /bound to no host/);
    assert.equal(asked.length, 0);
    const bound = { HONE_DATASET_KEY_GAMES: "secret", HONE_DATASET_KEY_GAMES_HOSTS: "127.0.0.1" };
    await openSource(spec, partsOf(bound));
    assert.equal(asked[0]?.authorization, "Bearer secret");
  });

  test("refuses keys of the environment that the source itself says, and an evaluation on what is trained on", () => {
    for (const key of ["taskId", "envType", "protocol"]) {
      assert.throws(() => specOf({ config: { [key]: "agentjet" } }), new RegExp(key));
    }
    assert.equal(overlapOf(specOf(), specOf())?.key, "dataset.eval.split");
    assert.equal(overlapOf(specOf(), specOf({ split: "test" })), undefined);
  });
});
