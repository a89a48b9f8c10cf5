import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { DeadlineError } from "@hone/core";
import { SettingError } from "../errors.ts";
import { resolveAddress } from "./server-address.ts";

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "hone-address-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const told = (file: string) => ({ kind: "told", file, variable: "HONE_NATS_URL_FILE" }) as const;
const { signal } = new AbortController();

describe("resolveAddress()", () => {
  test("waits for the file, and for its content", async () => {
    const file = join(folder, "late");
    const resolving = resolveAddress(told(file), { signal });
    await writeFile(file, "");
    await writeFile(file, "nats://127.0.0.1:4222\n");
    assert.equal(await resolving, "nats://127.0.0.1:4222");
  });

  test("names the variable and the file when nothing comes in time", async () => {
    const file = join(folder, "never");
    await assert.rejects(
      resolveAddress(told(file), { signal, deadlineMs: 30 }),
      (error) =>
        error instanceof DeadlineError &&
        error.message.includes("HONE_NATS_URL_FILE") &&
        error.message.includes(file),
    );
  });

  test("refuses a file that cannot be read", async () => {
    await assert.rejects(resolveAddress(told(folder), { signal }), SettingError);
  });

  test("stops waiting with the signal", async () => {
    const ending = new AbortController();
    const resolving = resolveAddress(told(join(folder, "never")), { signal: ending.signal });
    ending.abort(new Error("the start is given up"));
    await assert.rejects(resolving, /given up/);
  });
});
