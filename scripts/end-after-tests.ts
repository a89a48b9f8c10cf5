/**
 * Loaded before each test file: ends its process a while after its last test, should something that a test left behind
 * (a timer, a connection) still keep it alive. Node's own --test-force-exit does so at once, and loses results on their way.
 */

import { after } from "node:test";

/** Long enough, on a busy machine, for the hooks of the file that come after this one and for what they report. */
const PATIENCE_MS = 10_000;

after(() => {
  const end = () => {
    console.error(
      `the test file was ended, as it left something open: ${process.getActiveResourcesInfo().join(", ")}`,
    );
    process.exit();
  };
  setTimeout(end, PATIENCE_MS).unref();
});
