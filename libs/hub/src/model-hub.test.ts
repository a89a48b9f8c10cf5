import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { eventually } from "@hone/testing";
import { HubRefusedError, HubUnavailableError } from "./errors.ts";
import { ModelHub } from "./model-hub.ts";
import { type HubSettings, readHubSettings } from "./settings.ts";
import { COMMIT, type HubServer, startHubServer, TOKEN } from "./testing.ts";

const WEIGHTS = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7) % 251);
const { signal } = new AbortController();

describe("ModelHub", () => {
  let cacheDir: string;
  let server: HubServer;
  beforeEach(async () => {
    cacheDir = await mkdtemp(path.join(os.tmpdir(), "hone-hub-"));
    server = await startHubServer();
    // When a connection breaks, data that was not read from it yet is lost.
    server.untilBreak = async (sentBytes) => {
      await eventually("the part that was sent", async () => (await incompleteBytes()) === sentBytes);
    };
    server.files.set("config.json", Buffer.from("{}"));
    server.files.set("tokenizer.json", Buffer.from('{"version":"1.0"}'));
    server.files.set("model.safetensors", WEIGHTS);
    server.files.set("pytorch_model.bin", Buffer.from("the same once more"));
    server.files.set("README.md", Buffer.from("# A model"));
  });
  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await rm(cacheDir, { recursive: true });
  });

  const incompleteBytes = async () => {
    const blobs = path.join(cacheDir, "models--owner--name", "blobs");
    const name = (await readdir(blobs)).find((each) => each.endsWith(".incomplete"));
    return name === undefined ? 0 : (await stat(path.join(blobs, name))).size;
  };
  const hub = (changes: Partial<HubSettings> = {}) =>
    new ModelHub({ endpoint: server.endpoint, cacheDir, token: undefined, isOffline: false, ...changes });
  const fetchModel = (changes: Partial<HubSettings> = {}, revision = "main") =>
    hub(changes).folderOf("owner/name", revision, { signal });

  test("downloads only the files of a model, into the layout of the shared cache", async () => {
    const folder = await fetchModel();
    assert.equal(folder, path.join(cacheDir, "models--owner--name", "snapshots", COMMIT));
    assert.deepEqual(await readdir(folder), ["config.json", "model.safetensors", "tokenizer.json"]);
    assert.deepEqual(Uint8Array.from(await readFile(path.join(folder, "model.safetensors"))), WEIGHTS);
    assert.equal(await readFile(path.join(folder, "../../refs/main"), "utf8"), COMMIT);
    assert.equal((await readdir(path.join(folder, "../../blobs"))).length, 3);
  });

  test("files in the cache are not downloaded again, and are used offline", async () => {
    await fetchModel();
    server.requests.length = 0;
    await fetchModel({}, COMMIT);
    assert.ok(
      server.requests.every((request) => request.startsWith("GET /api/")),
      server.requests.join(),
    );
    server.requests.length = 0;
    assert.equal(await fetchModel({ isOffline: true }), await fetchModel({ isOffline: true }, COMMIT));
    assert.deepEqual(server.requests, []);
  });

  test("a model that the cache lacks is refused offline", async () => {
    await assert.rejects(fetchModel({ isOffline: true }), (error) => {
      assert.ok(error instanceof HubRefusedError);
      assert.match(
        error.message,
        /HF_HUB_OFFLINE is set, and the cache \(.*\) does not have the revision main/,
      );
      return true;
    });
  });

  test("a download that broke off continues where it ended", async () => {
    server.breakAfter.push(100_000, 50_000);
    await assert.rejects(fetchModel(), HubUnavailableError);
    await assert.rejects(fetchModel(), HubUnavailableError);
    const folder = await fetchModel();
    assert.deepEqual(Uint8Array.from(await readFile(path.join(folder, "model.safetensors"))), WEIGHTS);
    const ranges = server.requests
      .filter((request) => request.includes("/cdn/"))
      .map((each) => each.split("bytes=")[1]);
    assert.deepEqual(ranges, [undefined, "100000-", "150000-"]);
  });

  test("a continued download with another digest starts over", async () => {
    server.breakAfter.push(100_000);
    server.isDamaging = true;
    await assert.rejects(fetchModel(), HubUnavailableError);
    // The file has changed meanwhile, so its first part is wrong.
    server.isDamaging = false;
    server.files.set(
      "model.safetensors",
      WEIGHTS.map((byte) => byte ^ 1),
    );
    const folder = await fetchModel();
    const read = await readFile(path.join(folder, "model.safetensors"));
    assert.deepEqual(Uint8Array.from(read), server.files.get("model.safetensors"));
  });

  test("a file with another digest than the hub lists is refused and removed", async () => {
    server.isDamaging = true;
    await assert.rejects(
      fetchModel(),
      /model.safetensors does not have the digest [0-9a-f]{64} that the hub lists/,
    );
    const blobs = await readdir(path.join(cacheDir, "models--owner--name", "blobs"));
    assert.equal(blobs.filter((name) => name.endsWith(".incomplete") || name.length === 64).length, 0);
  });

  test("the token is sent to the hub and not to hosts that it redirects to", async () => {
    server.isPrivate = true;
    await assert.rejects(
      fetchModel(),
      /answered with status 401 .*; check the name, and that HF_TOKEN allows to read it/,
    );
    await fetchModel({ token: TOKEN });
    await assert.rejects(fetchModel({ token: "secret" }), /HF_TOKEN must begin with hf_/);
  });

  for (const name of ["../evil.json", "a/../../evil.json", "/evil.json", "a//b.json", "a\\..\\b.json"]) {
    test(`a repository that lists ${name} is refused`, async () => {
      server.files.set(name, Buffer.from("{}"));
      await assert.rejects(fetchModel(), (error) => {
        assert.ok(error instanceof HubRefusedError);
        assert.match(error.message, /lists the file ".*", whose path leads out of it/);
        return true;
      });
    });
  }

  test("a listing with an endless page is refused, and no more of it is read", {
    timeout: 20_000,
  }, async () => {
    server.isEndless = true;
    await assert.rejects(fetchModel(), (error) => {
      assert.ok(error instanceof HubRefusedError);
      assert.match(error.message, /a page of the list of its files has more than 16777216 bytes/);
      return true;
    });
  });

  for (const size of [-1, 0.5, 2 ** 60]) {
    test(`a repository that lists a file of ${size} bytes is refused`, async () => {
      server.listedSize = size;
      await assert.rejects(fetchModel(), (error) => {
        assert.ok(error instanceof HubRefusedError);
        assert.match(error.message, /with the size \S+, which is not a size/);
        return true;
      });
    });
  }

  const statuses: [number, abstract: new (...args: never[]) => Error, RegExp][] = [
    [403, HubRefusedError, /status 403 for revision main; .*HF_TOKEN allows to read it/],
    [404, HubRefusedError, /the hub does not have it \(status 404/],
    [429, HubUnavailableError, /the hub is not available.*status 429/],
    [503, HubUnavailableError, /the hub is not available.*status 503/],
  ];
  for (const [status, kind, message] of statuses) {
    test(`status ${status} is a ${kind.name}`, async () => {
      server.status = status;
      await assert.rejects(fetchModel(), (error) => {
        assert.ok(error instanceof kind);
        assert.match(error.message, message);
        return true;
      });
    });
  }

  test("an unreachable hub is a retryable error, and an abort is not", async () => {
    await assert.rejects(fetchModel({ endpoint: "http://127.0.0.1:1" }), HubUnavailableError);
    const stopped = AbortSignal.abort(new Error("stopping"));
    await assert.rejects(hub().folderOf("owner/name", "main", { signal: stopped }), /stopping/);
  });

  test("shards are downloaded if the weights are not in one file", async () => {
    server.files.delete("model.safetensors");
    const names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    for (const name of names) server.files.set(name, WEIGHTS);
    server.files.set("model.safetensors.index.json", Buffer.from("{}"));
    const folder = await fetchModel();
    const weights = (await readdir(folder)).filter((name) => name.startsWith("model"));
    assert.deepEqual(weights, [...names, "model.safetensors.index.json"]);
  });

  test("a repository without safetensors is refused with a list of its files", async () => {
    server.files.delete("model.safetensors");
    await assert.rejects(fetchModel(), /must have weights in safetensors, but has only .*pytorch_model.bin/);
  });

  test("names and revisions that lead out of the cache are refused before any request", async () => {
    for (const [model, revision] of [
      ["../name", "main"],
      ["owner/..", "main"],
      ["owner/name", "../../x"],
      ["owner/name", "/etc"],
    ] as const) {
      await assert.rejects(hub().folderOf(model, revision, { signal }), HubRefusedError);
    }
    assert.deepEqual(server.requests, []);
  });
});

describe("readHubSettings()", () => {
  test("reads the variables of all Hugging Face programs", () => {
    const home = "/home-of-somebody";
    assert.deepEqual(readHubSettings({}, home), {
      endpoint: "https://huggingface.co",
      cacheDir: `${home}/.cache/huggingface/hub`,
      token: undefined,
      isOffline: false,
    });
    const set = { HF_ENDPOINT: "http://mirror/", HF_TOKEN: "hf_x", HF_HUB_OFFLINE: "1", HF_HOME: "/models" };
    assert.deepEqual(readHubSettings(set, home), {
      endpoint: "http://mirror",
      cacheDir: "/models/hub",
      token: "hf_x",
      isOffline: true,
    });
    assert.equal(readHubSettings({ ...set, HF_HUB_CACHE: "/cache" }, home).cacheDir, "/cache");
  });
});
