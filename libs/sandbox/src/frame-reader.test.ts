import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { FrameReader, ProtocolError } from "./frame-reader.ts";
import { FrameKind } from "./protocol.ts";

const NONCE = Buffer.alloc(16, 7);

function frame(payload: Uint8Array, kind = 3, nonce: Buffer = NONCE): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt32LE(payload.length + 17);
  return Buffer.concat([head, nonce, Buffer.from([kind]), payload]);
}

function expecting(maxBytes = 1_000): FrameReader {
  const reader = new FrameReader();
  reader.expect(NONCE, maxBytes);
  return reader;
}

describe("FrameReader", () => {
  test("reads frames in chunks of any size", () => {
    const kinds = fc.constantFrom(...Object.values(FrameKind));
    const frames = fc.array(fc.tuple(kinds, fc.uint8Array({ maxLength: 60 })), { maxLength: 6 });
    fc.assert(
      fc.property(frames, fc.array(fc.nat(40), { minLength: 1 }), (told, cuts) => {
        let bytes = Buffer.concat(told.map(([kind, payload]) => frame(payload, kind)));
        const reader = expecting();
        const read = [];
        for (let i = 0; bytes.length > 0; i++) {
          const length = (cuts[i % cuts.length] ?? 0) + 1;
          for (const each of reader.read(bytes.subarray(0, length))) {
            read.push([FrameKind[each.kind], Buffer.from(each.payload).toString("hex")]);
          }
          bytes = bytes.subarray(length);
        }
        assert.deepEqual(
          read,
          told.map(([kind, payload]) => [kind, Buffer.from(payload).toString("hex")]),
        );
      }),
    );
  });

  test("arbitrary bytes are refused or wait for more bytes, and never become a frame", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          assert.deepEqual([...expecting().read(Buffer.from(bytes))], []);
        } catch (error) {
          assert.ok(error instanceof ProtocolError);
        }
      }),
    );
  });

  test("refuses a frame that is too long after its first four bytes", () => {
    const reader = expecting(100);
    assert.throws(() => [...reader.read(frame(Buffer.alloc(101)).subarray(0, 4))], /118 bytes/);
  });

  test("the expected nonce can change between two frames of one chunk", () => {
    const reader = expecting();
    const frames = reader.read(Buffer.concat([frame(Buffer.from("a")), frame(Buffer.from("b"))]));
    assert.equal(frames.next().value?.payload.toString(), "a");
    reader.expect(Buffer.alloc(16, 8), 1_000);
    assert.throws(() => frames.next(), /not of this run/);
  });
});
