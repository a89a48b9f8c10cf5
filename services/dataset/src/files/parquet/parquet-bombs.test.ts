import assert from "node:assert/strict";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { temporaryFolder } from "@hone/testing";
import { parquetWriteBuffer } from "hyparquet-writer";
import { ByteWriter } from "hyparquet-writer/src/bytewriter.js";
import { serializeTCompactProtocol } from "hyparquet-writer/src/thrift.js";
import { SourceError } from "../../errors.ts";
import { linesOfParquet } from "./decode-parquet.ts";
import { parquetToJsonl } from "./parquet-rows.ts";

/* Files as an attacker may write them: some hundred bytes that expand to gigabytes. */

const MIB = 1024 * 1024;
/** Enough for an honest file; the process itself takes some 150 MiB. */
const MEMORY_BYTES = 400 * MIB;

const Codec = { none: 0, snappy: 1, gzip: 2, brotli: 4, zstd: 6, lz4Raw: 7 } as const;
const INT32 = 1;
const BYTE_ARRAY = 6;
const Encoding = { plain: 0, rleDictionary: 8, deltaByteArray: 7 } as const;

interface Page {
  readonly type?: number;
  readonly codec?: number;
  readonly encoding: number;
  /** The number of values that the page's header states. */
  readonly numValues: number;
  readonly bytes: Uint8Array;
  /** The length that the page's header states. @default that of `bytes` */
  readonly uncompressedBytes?: number;
  /** Bytes of the dictionary page before it, in plain encoding. */
  readonly dictionary?: Uint8Array;
}

/** A file with one column and one page. */
function fileOf(page: Page, numRows = 1): Uint8Array {
  const { type = INT32, codec = Codec.none, encoding, numValues, bytes, dictionary } = page;
  const writer = new ByteWriter();
  const magic = new TextEncoder().encode("PAR1");
  writer.appendBytes(magic);
  if (dictionary !== undefined) {
    serializeTCompactProtocol(writer, {
      field_1: 2,
      field_2: dictionary.length,
      field_3: dictionary.length,
      field_7: { field_1: 1, field_2: Encoding.plain },
    });
    writer.appendBytes(dictionary);
  }
  const dataOffset = writer.offset;
  serializeTCompactProtocol(writer, {
    field_1: 0,
    field_2: page.uncompressedBytes ?? bytes.length,
    field_3: bytes.length,
    field_5: { field_1: numValues, field_2: encoding, field_3: 3, field_4: 3 },
  });
  writer.appendBytes(bytes);
  const metadataOffset = writer.offset;
  const size = BigInt(metadataOffset - magic.length);
  serializeTCompactProtocol(writer, {
    field_1: 2,
    field_2: [
      { field_4: "root", field_5: 1 },
      { field_1: type, field_3: 0, field_4: "a" },
    ],
    field_3: BigInt(numRows),
    field_4: [
      {
        field_1: [
          {
            field_2: 0n,
            field_3: {
              field_1: type,
              field_2: [encoding],
              field_3: ["a"],
              field_4: codec,
              field_5: BigInt(numValues),
              field_6: size,
              field_7: size,
              field_9: BigInt(dataOffset),
              ...(dictionary !== undefined && { field_11: BigInt(magic.length) }),
            },
          },
        ],
        field_2: size,
        field_3: BigInt(numRows),
      },
    ],
  });
  writer.appendUint32(writer.offset - metadataOffset);
  writer.appendBytes(magic);
  return writer.getBytes();
}

/** Unsigned LEB128. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return [...bytes, rest];
}

describe("Parquet files that expand to more than is allowed", { timeout: 120_000 }, () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    folder = await temporaryFolder("bombs");
  });
  after(() => folder[Symbol.asyncDispose]());
  const place = (name: string) => path.join(folder.path, name);
  const decode = async (content: Uint8Array) => {
    await writeFile(place("rows.parquet"), content);
    await parquetToJsonl(place("rows.parquet"), place("rows.jsonl"), {
      maxMemoryBytes: MEMORY_BYTES,
      deadlineMs: 60_000,
    });
  };
  const refused = async (content: Uint8Array, reason: RegExp) => {
    const startedAt = performance.now();
    const memory = process.memoryUsage.rss();
    await assert.rejects(decode(content), (error) => {
      assert.ok(error instanceof SourceError, String(error));
      assert.match(error.message, /^rows\.parquet cannot be read as Parquet: /);
      assert.match(error.message, reason);
      return true;
    });
    assert.ok(performance.now() - startedAt < 60_000);
    // The memory was taken in another process, and not in this one.
    assert.ok(process.memoryUsage.rss() - memory < 200 * MIB);
    assert.deepEqual(await readdir(folder.path), ["rows.parquet"]);
  };

  test("an honest file that this test made is read", async () => {
    const bytes = Uint8Array.from([3, 0, 0, 0, 9, 0, 0, 0]);
    await decode(fileOf({ encoding: Encoding.plain, numValues: 2, bytes }, 2));
    assert.equal((await stat(place("rows.jsonl"))).size, '{"a":3}\n{"a":9}\n'.length);
    await rm(place("rows.jsonl"));
  });

  test("a run of equal values that is longer than its page is refused", async () => {
    const bytes = Uint8Array.from([1, ...varint(2 ** 30 * 2), 0]);
    const dictionary = Uint8Array.from([7, 0, 0, 0]);
    const bomb = fileOf({ encoding: Encoding.rleDictionary, numValues: 1, bytes, dictionary });
    assert.ok(bomb.length < 300);
    await refused(bomb, /more than 400 MiB of memory/);
  });

  test("a page of a billion values of zero bits each is refused", async () => {
    const dictionary = Uint8Array.from([7, 0, 0, 0]);
    const numValues = 2 ** 30;
    const bytes = Uint8Array.from([0]);
    await refused(
      fileOf({ encoding: Encoding.rleDictionary, numValues, bytes, dictionary }),
      /more than 400 MiB of memory/,
    );
  });

  test("texts that each begin with the whole text before them are refused", async () => {
    // Delta encoding: lengths of prefixes 0, 1000, 2000 …, each with a suffix of 1000 bytes.
    const count = 4_000;
    const zigzag = (value: number) => varint(value * 2);
    const lengths = (first: number, step: number) => [
      ...[...varint(8_192), ...varint(1), ...varint(count), ...zigzag(first)],
      ...[...zigzag(step), 0],
    ];
    const suffixes = new Uint8Array(count * 1_000).fill(97);
    const bytes = Uint8Array.from([...lengths(0, 1_000), ...lengths(1_000, 0), ...suffixes]);
    const bomb = fileOf(
      {
        type: BYTE_ARRAY,
        codec: Codec.gzip,
        encoding: Encoding.deltaByteArray,
        numValues: count,
        bytes: gzipSync(bytes),
        uncompressedBytes: bytes.length,
      },
      count,
    );
    assert.ok(bomb.length < 10_000);
    await refused(bomb, /more than 400 MiB of memory|the rows of a file of \d+ bytes would take/);
  });

  test("a file that claims more rows than it can hold is refused", () =>
    refused(
      fileOf({ encoding: Encoding.plain, numValues: 1, bytes: new Uint8Array(4) }, 2 ** 40),
      /claims 1099511627776 rows, more than a file of \d+ bytes may have/,
    ));

  for (const [name, codec] of Object.entries(Codec)) {
    if (name === "none") continue;
    test(`a page that claims to decompress to two gigabytes is refused: ${name}`, () =>
      refused(
        fileOf({
          codec,
          encoding: Encoding.plain,
          numValues: 1,
          bytes: new Uint8Array(8),
          uncompressedBytes: 2 ** 31 - 1,
        }),
        /a page would take 2147483647 bytes, and at most 536870912 are allowed/,
      ));
  }

  for (const [name, codec, compress] of [
    ["gzip", Codec.gzip, gzipSync],
    ["brotli", Codec.brotli, brotliCompressSync],
    ["zstd", Codec.zstd, zstdCompressSync],
  ] as const) {
    test(`a page that decompresses to more than its header states is refused: ${name}`, async () => {
      const bytes = compress(new Uint8Array(64 * MIB));
      assert.ok(bytes.length < MIB);
      await refused(
        fileOf({ codec, encoding: Encoding.plain, numValues: 1, bytes, uncompressedBytes: 4 }),
        /larger than 4 bytes/,
      );
    });
  }

  test("a file with one long text in every row is refused once the bytes written reach the limit", async () => {
    const text = "x".repeat(100_000);
    const data = Array.from({ length: 10_000 }, () => text);
    const file = new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "a", data, type: "STRING" }] }));
    await writeFile(place("rows.parquet"), file);
    let written = 0;
    await assert.rejects(async () => {
      for await (const piece of linesOfParquet(place("rows.parquet"), 20 * MIB)) written += piece.length;
    }, /the rows of a file of \d+ bytes would take \d+ bytes, and at most 20971520 are allowed/);
    assert.ok(written <= 20 * MIB);
  });

  test("a row that is longer than a line may be is refused", async () => {
    const data = ["x".repeat(9 * MIB)];
    await refused(
      new Uint8Array(parquetWriteBuffer({ columnData: [{ name: "a", data, type: "STRING" }] })),
      /a row would take \d+ bytes, and at most 8388608 are allowed/,
    );
  });
});
