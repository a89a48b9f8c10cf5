import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LoadSample } from "./load-sample.ts";
import { judgeLoad } from "./load-verdict.ts";

const MEBIBYTE = 1_024 ** 2;

/** Five minutes, with a sample every five seconds. */
function samples(of: (second: number) => { inFlight?: number; bytes?: number; pid?: number }): LoadSample[] {
  return Array.from({ length: 60 }, (_, i) => {
    const seconds = i * 5;
    const { inFlight = 1_000, bytes = 200 * MEBIBYTE, pid = 1 } = of(seconds);
    return {
      seconds,
      inFlight,
      waitingJobs: 0,
      redelivered: 0,
      unscored: 0,
      unstored: 0,
      episodes: seconds * 100,
      processes: { judge: { pid, memoryBytes: bytes, peakBytes: bytes, cpuMs: seconds * 250 } },
    };
  });
}

describe("judgeLoad()", () => {
  test("passes a load that was held by processes that do not grow", () => {
    // Processes are smaller in the first sample, and the heap goes up and down.
    const verdict = judgeLoad(
      samples((second) => ({
        inFlight: second === 0 ? 10 : 1_000,
        bytes: second === 0 ? MEBIBYTE : (200 + ((second / 5) % 4) * 10) * MEBIBYTE,
      })),
      1_000,
    );
    assert.deepEqual(verdict.problems, []);
    assert.deepEqual(verdict.aboveAim, []);
    assert.deepEqual([verdict.peakInFlight, verdict.heldShare, verdict.episodesPerSecond], [1_000, 1, 100]);
    assert.equal(verdict.processes[0]?.cores, 0.25);
  });

  test("reports a process that grows slowly, and one that is too large", () => {
    const growing = judgeLoad(
      samples((second) => ({ bytes: (200 + second / 5) * MEBIBYTE })),
      1_000,
    );
    assert.match(growing.problems.join(), /^judge grew by 39 MiB$/);
    const large = judgeLoad(
      samples(() => ({ bytes: 1_100 * MEBIBYTE })),
      1_000,
    );
    assert.match(large.problems.join(), /^judge took 1100 MiB$/);
    const middling = judgeLoad(
      samples(() => ({ bytes: 600 * MEBIBYTE })),
      1_000,
    );
    assert.deepEqual([middling.problems, middling.aboveAim], [[], ["judge"]]);
  });

  test("ignores growth in the first third, and reports growth after it", () => {
    const filling = judgeLoad(
      samples((second) => ({ bytes: Math.min(200 + 2 * second, 390) * MEBIBYTE })),
      1_000,
    );
    assert.deepEqual(filling.problems, []);
    const late = judgeLoad(
      samples((second) => ({ bytes: (second < 150 ? 200 : 200 + second - 150) * MEBIBYTE })),
      1_000,
    );
    assert.match(late.problems.join(), /judge grew by/);
  });

  test("reports a load that was not reached, or not held", () => {
    const low = judgeLoad(
      samples(() => ({ inFlight: 900 })),
      1_000,
    );
    assert.match(low.problems.join(), /not reached .* 900 of 1000/);
    const unsteady = judgeLoad(
      samples((second) => ({ inFlight: second % 10 === 0 ? 1_000 : 500 })),
      1_000,
    );
    assert.match(unsteady.problems.join(), /held in 50 %/);
  });

  test("reports a process that was restarted", () => {
    const verdict = judgeLoad(
      samples((second) => ({ pid: second < 100 ? 1 : 2 })),
      1_000,
    );
    assert.match(verdict.problems.join(), /judge was restarted 1 times/);
  });
});
