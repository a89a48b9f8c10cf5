import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { BoundKeys } from "@hone/config";
import { RetryableError } from "@hone/core";
import { COMMIT, type HubServer, startHubServer } from "@hone/hub/testing";
import { silentLogger } from "@hone/telemetry";
import { type TemporaryFolder, temporaryFolder } from "@hone/testing";
import { SourceError } from "../../errors.ts";
import { decodeSource } from "../../nats/decode-source.ts";
import { RowFiles } from "../row-files.ts";
import { offlineHub } from "../testing/offline-hub.ts";
import { openSource } from "./open-source.ts";

describe("data sets of the hub", () => {
  let folder: TemporaryFolder;
  let server: HubServer;
  beforeEach(async () => {
    folder = await temporaryFolder("hub-datasets");
    server = await startHubServer();
    server.files.set("main/train-00000-of-00001.jsonl", Buffer.from('{"n":1}\n{"n":2}\n'));
    server.files.set("main/test-00000-of-00001.jsonl", Buffer.from('{"n":9}\n'));
    server.files.set("README.md", Buffer.from("# train"));
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  const openerOf = (more: { isOffline?: boolean; patienceMs?: number } = {}) => {
    const { isOffline = false, patienceMs } = more;
    const root = folder.path;
    const settings = { endpoint: server.endpoint, cacheDir: path.join(root, "cache"), isOffline };
    const hub = offlineHub({ root, settings, ...(patienceMs !== undefined && { patienceMs }) });
    const files = new RowFiles({ root, cacheFolder: path.join(root, "rows"), logger: silentLogger() });
    return (spec: object) =>
      openSource(decodeSource({ source: "hugging_face", path: "owner/name", ...spec }), {
        files,
        hub,
        keys: BoundKeys.none,
      });
  };
  const downloads = () => server.requests.filter((request) => request.includes("/resolve/"));

  test("only the files of the split are fetched, and only once", async () => {
    const open = openerOf();
    const order = await open({});
    assert.equal(order.size, 2);
    const [task] = await order.take({ runSeed: 1, cursor: 1, count: 1, isShuffled: false });
    assert.equal(task?.kind === "row" && task.rowJson, '{"n":2}');
    await Promise.all([open({}), open({})]);
    assert.deepEqual(downloads(), [
      `GET /datasets/owner/name/resolve/${COMMIT}/main/train-00000-of-00001.jsonl`,
    ]);
    assert.equal((await open({ split: "test", subset: "main" })).size, 1);
  });

  test("a folder of the project takes precedence over a data set of the hub", async () => {
    await mkdir(path.join(folder.path, "owner/name"), { recursive: true });
    await writeFile(path.join(folder.path, "owner/name/train.jsonl"), "{}\n{}\n{}\n");
    assert.equal((await openerOf()({})).size, 3);
    assert.deepEqual(server.requests, []);
  });

  test("a split or a data set that does not exist is refused, a hub that does not answer is asked again", async () => {
    const open = openerOf();
    await assert.rejects(open({ split: "validation" }), SourceError);
    await assert.rejects(open({ path: "owner/other" }), SourceError);
    server.status = 503;
    await assert.rejects(open({ split: "test" }), RetryableError);
    server.status = undefined;
    assert.equal((await open({ split: "test" })).size, 1);
  });

  test("a request during a long download gets its progress, and a later one gets the rows", async () => {
    const open = openerOf({ patienceMs: 0 });
    await assert.rejects(open({}), /owner\/name is still being fetched: \d+ of \d+ MiB/);
    for (;;) {
      const order = await open({}).catch((error: unknown) => {
        assert.ok(error instanceof RetryableError);
        return undefined;
      });
      if (order !== undefined) break;
    }
    assert.equal(downloads().length, 1);
  });
});
