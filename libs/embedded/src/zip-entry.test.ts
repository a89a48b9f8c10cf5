import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { deflateRawSync } from "node:zlib";
import { DownloadError } from "./errors.ts";
import { readZipEntry } from "./zip-entry.ts";

/** A ZIP file with one entry, which has an extra field in its local header as in real files. */
function zipOf(path: string, data: Buffer, method: number, claimedBytes = data.length): Buffer {
  const packed = method === 8 ? deflateRawSync(data) : data;
  const name = Buffer.from(path);
  const extra = Buffer.alloc(4);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(method, 8);
  local.writeUInt32LE(packed.length, 18);
  local.writeUInt32LE(claimedBytes, 22);
  local.writeUInt16LE(name.length, 26);
  local.writeUInt16LE(extra.length, 28);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(0x02014b50, 0);
  central.writeUInt16LE(method, 10);
  central.writeUInt32LE(packed.length, 20);
  central.writeUInt32LE(claimedBytes, 24);
  central.writeUInt16LE(name.length, 28);
  const centralAt = local.length + name.length + extra.length + packed.length;
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(centralAt, 16);
  return Buffer.concat([local, name, extra, packed, central, name, end]);
}

describe("readZipEntry()", () => {
  const data = Buffer.from("nats-server ".repeat(100));

  test("reads deflated and stored entries", () => {
    for (const method of [8, 0]) {
      assert.deepEqual(
        readZipEntry(zipOf("a/scripts/nats-server", data, method), (path) => path.endsWith("nats-server")),
        data,
      );
    }
  });

  test("names what is there when the entry is missing", () => {
    const zip = zipOf("a/b", data, 8);
    assert.throws(
      () => readZipEntry(zip, (path) => path === "c"),
      (error) => error instanceof DownloadError && /a\/b/.test(error.message),
    );
  });

  test("refuses what is no ZIP file", () => {
    assert.throws(() => readZipEntry(Buffer.from("<html>"), () => true), DownloadError);
  });

  test("refuses a method that it cannot unpack", () => {
    assert.throws(
      () => readZipEntry(zipOf("a", data, 12), () => true),
      (error) => error instanceof DownloadError && /unknown compression type 12/.test(error.message),
    );
  });

  test("refuses a file that ends too early, and one whose data are broken", () => {
    const random = randomBytes(100_000);
    const zip = zipOf("a", random, 8);
    assert.throws(
      () => readZipEntry(zip.subarray(0, 50_000), () => true),
      (error) => error instanceof DownloadError && /invalid zip data/.test(error.message),
    );
    const broken = Buffer.from(zipOf("a", data, 8)).fill(0xff, 36, 60);
    assert.throws(() => readZipEntry(broken, () => true), DownloadError);
  });

  test("an entry that unpacks to more than a server has is not unpacked", () => {
    const zip = zipOf("bin/nats-server", Buffer.alloc(257 * 1024 * 1024), 8);
    assert.ok(zip.length < 1024 * 1024);
    assert.throws(
      () => readZipEntry(zip, () => true),
      (error) => error instanceof DownloadError && /more than 268435456 bytes/.test(error.message),
    );
  });

  test("an entry that unpacks to more than it claims is unpacked up to the bound", () => {
    const zip = zipOf("bin/nats-server", Buffer.alloc(64 * 1024 * 1024), 8, 10);
    assert.throws(
      () => readZipEntry(zip, () => true, 1024 * 1024),
      (error) => error instanceof DownloadError && /more than 1048576 bytes/.test(error.message),
    );
  });
});
