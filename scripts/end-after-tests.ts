/**
 * Loaded before each test file: ends its process a while after its last test, should something that a test left behind
 * (a timer, a connection) still keep it alive. Node's own --test-force-exit does so at once, and loses results on their way.
 */

import { after } from "node:test";

/** Long enough for everything that was reported to be read. */
const PATIENCE_MS = 1_000;

after(() => {
  setTimeout(() => process.exit(), PATIENCE_MS).unref();
});
