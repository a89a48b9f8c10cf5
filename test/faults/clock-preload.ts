/**
 * Is loaded into a service before it starts, and into each of its threads, so that a test can set its wall clock.
 *
 *   NODE_OPTIONS="--import …/clock-preload.ts" HONE_TEST_CLOCK=<file with the offset in milliseconds>
 *
 * The service ends with the test that started it, even if the test is killed.
 *
 * The monotonic clock is not changed, just as on a machine whose time is set.
 */

import { readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** How often the file is read. */
const LOOK_EVERY_MS = 20;

if (isMainThread && process.channel !== undefined) {
  process.once("disconnect", () => process.exit());
  process.channel.unref();
}

const file = process.env.HONE_TEST_CLOCK;
if (file !== undefined) {
  let offsetMs = 0;
  const look = () => {
    offsetMs = Number(readFileSync(file, "utf8"));
  };
  look();
  setInterval(look, LOOK_EVERY_MS).unref();
  const RealDate = Date;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, given, newTarget) =>
      Reflect.construct(target, given.length === 0 ? [target.now() + offsetMs] : given, newTarget) as object,
    apply: (target) => new target(target.now() + offsetMs).toString(),
    get: (target, property) =>
      property === "now" ? () => target.now() + offsetMs : (Reflect.get(target, property) as unknown),
  });
}
