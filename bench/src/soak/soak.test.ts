import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { SoakSample } from "./soak-engines.ts";
import { soakEngines } from "./soak-engines.ts";
import { parseSoakOptions } from "./soak-options.ts";
import { judgeSoak } from "./soak-verdict.ts";

const MEBIBYTE = 1_024 ** 2;
const TINY = [
  ...["--shape", "tiny", "--generations", "40", "--steps", "6", "--swaps", "3"],
  ...["--max-batch", "6", "--max-prompt", "12", "--max-new", "6", "--interval-ms", "10"],
];

/** Ten minutes, with a sample every second. */
function samples(of: (second: number) => number): SoakSample[] {
  return Array.from({ length: 600 }, (_, seconds) => ({
    seconds,
    generations: seconds,
    steps: 0,
    swaps: 0,
    processes: { generation: of(seconds) * MEBIBYTE, training: 3_000 * MEBIBYTE },
  }));
}

describe("soakEngines()", () => {
  test("makes the requested generations, steps and swaps, and samples the memory of both engines", async () => {
    const seen: SoakSample[] = [];
    const found = await soakEngines(parseSoakOptions(TINY), (sample) => seen.push(sample));
    assert.deepEqual(found, seen);
    const last = found.at(-1)!;
    assert.ok(last.generations >= 30 && last.generations <= 40 && last.steps >= 4 && last.swaps >= 2);
    for (const bytes of Object.values(last.processes)) assert.ok(bytes > 10 * MEBIBYTE);
  });
});

describe("judgeSoak()", () => {
  test("passes processes whose size varies, as it does while two versions are loaded", () => {
    const swinging = samples((second) => (second < 60 ? 500 : second % 30 < 5 ? 2_200 : 1_600));
    assert.deepEqual(judgeSoak(swinging).problems, []);
  });

  test("reports a process that keeps some memory of every version", () => {
    const kept = samples((second) => 1_600 + Math.floor(second / 30) * 20);
    assert.match(judgeSoak(kept).problems.join(), /^generation grew by 3\d\d MiB$/);
  });

  test("gives no verdict on a few samples", () => {
    assert.match(judgeSoak(samples(() => 1).slice(0, 5)).problems.join(), /sampled only 4 times/);
  });
});

describe("parseSoakOptions()", () => {
  test("refuses unknown values, and lists the allowed ones", () => {
    assert.throws(() => parseSoakOptions(["--shape", "7b"]), /--shape is 7b; it must be one of 135m, tiny/);
    assert.throws(() => parseSoakOptions(["--swaps", "0"]), /--swaps is 0; it must be a whole number/);
  });
});
