/**
 * A process that records some spans, for environment.int.test.ts: its variables are what is tested.
 * Arguments: Hone's tracer, or an empty text for none, and how many spans to record.
 */

import {
  type Attributes,
  createLogger,
  injectContext,
  linkToTraceparent,
  startTelemetry,
  withSpan,
} from "@hone/telemetry";

const [tracerUrl, numSpans] = process.argv.slice(2);
const telemetry = await startTelemetry({
  serviceName: "judge",
  instanceId: "judge-0",
  tracerUrl,
  tracerToken: "token-of-the-tracer",
  logger: createLogger({ service: "judge", sink: process.stderr }),
});
const links = Array.from({ length: 200 }, (_, i) =>
  linkToTraceparent(`00-${(i + 1).toString(16).padStart(32, "0")}-00000000000000ff-01`),
).filter((link) => link !== undefined);
const attributes: Attributes = { text: "x".repeat(1_000) };
const headers = new Map<string, string>();
for (let i = 0; i < Number(numSpans); i++) {
  await withSpan(`span ${i}`, { parent: "root", links, attributes }, () => {
    injectContext({
      get: (key) => headers.get(key),
      set: (key, value) => void headers.set(key, value),
      keys: () => [...headers.keys()],
    });
  });
}
await telemetry.shutdown({ deadlineMs: 5_000 });
process.stderr.write(`${JSON.stringify({ isEnabled: telemetry.isEnabled, headers: [...headers.keys()] })}\n`);
