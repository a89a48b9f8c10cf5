import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { describe, test } from "node:test";
import { clock, figure, share, span } from "./format.ts";
import { Terminal, table } from "./terminal.ts";

describe("numbers and times", () => {
  test("clock() counts up to hours", () => {
    assert.deepEqual([7_000, 725_000, 10_929_000, -5].map(clock), ["0:07", "12:05", "3:02:09", "0:00"]);
  });

  test("span() takes the unit that fits", () => {
    assert.deepEqual([38_000, 720_000, 5 * 3_600_000].map(span), ["38 s", "12 min", "5 h"]);
  });

  test("figure() keeps three significant digits", () => {
    assert.deepEqual(
      [0.4123, 12.345, 127.4, 8_100, 81_234, 2_345_678, 1_000, undefined, Number.NaN].map(figure),
      ["0.412", "12.3", "127", "8,100", "81.2k", "2.35M", "1,000", "-", "-"],
    );
  });

  test("share() always has two decimals", () => {
    assert.deepEqual([0, 0.875, undefined].map(share), ["0.00", "0.88", "-"]);
  });

  test("table() makes each column as wide as its longest cell", () => {
    assert.deepEqual(
      table([
        ["a", "bb"],
        ["ccc", ""],
      ]),
      ["a    bb", "ccc"],
    );
  });
});

class Sink extends Writable {
  readonly isTTY: boolean;
  readonly columns = 20;
  text = "";

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.text += chunk.toString();
    done();
  }
}

describe("Terminal", () => {
  test("keeps the live line below the printed lines and cuts it to the terminal's width", () => {
    const sink = new Sink(true);
    const terminal = new Terminal(sink);
    terminal.live("a live line that is too long");
    terminal.line("printed");
    assert.equal(sink.text, "\r\u001b[Ka live line that i…\r\u001b[Kprinted\na live line that i…");
  });

  test("prints no live line where the output is not a terminal", () => {
    const sink = new Sink(false);
    const terminal = new Terminal(sink);
    terminal.live("unseen");
    terminal.line("seen");
    assert.equal(sink.text, "seen\n");
  });
});
