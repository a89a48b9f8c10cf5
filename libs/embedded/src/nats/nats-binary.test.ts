import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ProgramMissingError } from "../errors.ts";
import { type FetchRoute, findNatsServer } from "./nats-binary.ts";
import { fetchRelease, NATS_RELEASE } from "./nats-downloads.ts";

/** A folder that is removed at the end of the scope. */
async function scratch(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "hone-binary-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** A program that answers `--version` as nats-server does. */
async function writeProgram(path: string, version: string): Promise<void> {
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
}

/** Debian's folder for servers is always searched and may contain a real server, so these tests exclude it. */
const HIDDEN = { PATH: "" };
const failing: FetchRoute = { name: "a route", fetch: () => Promise.reject(new Error("no network")) };

function fetching(version: string, calls: string[] = []): FetchRoute {
  return {
    name: "a route",
    fetch: async ({ target }) => {
      calls.push(target);
      await writeProgram(target, version);
    },
  };
}

describe("findNatsServer()", () => {
  test("uses the program that HONE_NATS_SERVER names", async () => {
    await using folder = await scratch();
    const program = join(folder.path, "my-server");
    await writeProgram(program, "2.11.4");
    const found = await findNatsServer({ env: { HONE_NATS_SERVER: program }, fallbackCacheDir: folder.path });
    assert.deepEqual(found, { path: program, version: "2.11.4" });
  });

  test("refuses a program of HONE_NATS_SERVER that does not work, and does not use another one", async () => {
    await using folder = await scratch();
    const old = join(folder.path, "old-server");
    await writeProgram(old, "2.8.4");
    for (const [named, reason] of [
      ["/nowhere/nats-server", /does not run/],
      [old, /too old: 2\.8\.4/],
    ] as const) {
      await assert.rejects(
        findNatsServer({
          env: { HONE_NATS_SERVER: named },
          fallbackCacheDir: folder.path,
          routes: [fetching("2.10.0")],
        }),
        (error) => error instanceof ProgramMissingError && reason.test(error.message),
      );
    }
  });

  test("skips a version on PATH that is too old for a newer one later on PATH", async () => {
    await using folder = await scratch();
    const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
    for (const each of [first, second]) await mkdir(each);
    await writeProgram(join(first, "nats-server"), "2.2.0");
    await writeProgram(join(second, "nats-server"), "2.9.0");
    const env = { PATH: `${first}:${second}` };
    const found = await findNatsServer({ env, fallbackCacheDir: folder.path, sbinFolders: [] });
    assert.equal(found.path, join(second, "nats-server"));
  });

  test("downloads once, then finds the program in the cache", async () => {
    await using folder = await scratch();
    const calls: string[] = [];
    const options = {
      env: { ...HIDDEN, HONE_CACHE_DIR: join(folder.path, "cache") },
      fallbackCacheDir: folder.path,
      sbinFolders: [],
      routes: [failing, fetching("2.10.22", calls)],
    };
    const first = await findNatsServer(options);
    const second = await findNatsServer(options);
    assert.equal(calls.length, 1);
    assert.deepEqual(first, second);
    assert.match(first.path, /cache\/nats-server-/);
  });

  test("uses the fallback folder if the user's cache is not writable", async () => {
    await using folder = await scratch();
    const file = join(folder.path, "file");
    await writeFile(file, "no folder");
    const env = { ...HIDDEN, HONE_CACHE_DIR: join(file, "cache") };
    const fallbackCacheDir = join(folder.path, "fallback");
    const found = await findNatsServer({
      env,
      fallbackCacheDir,
      sbinFolders: [],
      routes: [fetching("2.10.0")],
    });
    assert.match(found.path, /fallback\/nats-server-/);
  });

  test("lists what it tried and how to install the program when it finds none", async () => {
    await using folder = await scratch();
    const env = { ...HIDDEN, HONE_CACHE_DIR: folder.path };
    await assert.rejects(
      findNatsServer({ env, fallbackCacheDir: folder.path, sbinFolders: [], routes: [failing] }),
      (error) =>
        error instanceof ProgramMissingError &&
        /a route: no network[\s\S]*Install it with: {2}\S+[\s\S]*HONE_NATS_SERVER/.test(error.message),
    );
  });
});

describe("fetchRelease()", () => {
  test("refuses an archive with another checksum, and leaves no files behind", async () => {
    await using folder = await scratch();
    const body = Buffer.from("not the release");
    const server = createServer((_, response) => response.end(body)).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const target = join(folder.path, "nats-server");
      await assert.rejects(
        fetchRelease({ target, platform: "linux-x64" }, `http://127.0.0.1:${port}`),
        new RegExp(
          `has the SHA-256 ${createHash("sha256").update(body).digest("hex")}, not the expected ${NATS_RELEASE.archives["linux-x64"]?.sha256}`,
        ),
      );
      assert.deepEqual(await readdir(folder.path), []);
    } finally {
      server.close();
    }
  });

  test("names the platform if it has no archive for it", async () => {
    await assert.rejects(
      fetchRelease({ target: "/nowhere", platform: "sunos-x64" }),
      /no file in the GitHub release for the platform sunos-x64/,
    );
  });
});
