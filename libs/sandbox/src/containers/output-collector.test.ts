import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OutputCollector } from "./output-collector.ts";

function frame(kind: number, text: string): Buffer {
  const head = Buffer.alloc(8);
  head[0] = kind;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

describe("OutputCollector", () => {
  const stream = Buffer.concat([frame(1, "one "), frame(2, "two "), frame(1, ""), frame(1, "three")]);

  test("joins both outputs in their order, however the stream is cut into parts", () => {
    for (const size of [1, 3, 8, 9, 100]) {
      const collector = new OutputCollector(1_000);
      for (let at = 0; at < stream.length; at += size) collector.push(stream.subarray(at, at + size));
      const { bytes, droppedBytes } = collector.finish();
      assert.equal(bytes.toString(), "one two three");
      assert.equal(droppedBytes, 0);
    }
  });

  test("keeps the first and the last half of what is too much, and counts the rest", () => {
    const collector = new OutputCollector(10);
    for (let i = 0; i < 1_000; i++) collector.push(frame(1, String.fromCharCode(97 + (i % 26)).repeat(7)));
    collector.push(frame(1, "12345"));
    const { bytes, droppedBytes, droppedAt } = collector.finish();
    assert.equal(bytes.toString(), "aaaaa12345");
    assert.deepEqual([droppedBytes, droppedAt], [7_000 - 5, 5]);
  });

  test("takes text that looks like a frame as text", () => {
    const collector = new OutputCollector(100);
    const inner = frame(2, "forged").toString("latin1");
    collector.push(frame(1, inner));
    assert.equal(collector.finish().bytes.toString("latin1"), inner);
  });
});
