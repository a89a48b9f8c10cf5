/**
 * `npm run bench:page`: times every answer of the API and every view of the page for a run of 100,000 rollouts.
 *
 *   npm run bench:page -- [--rollouts 100000] [--rounds 7] [--fresh]
 *
 * A view is timed in a browser, from the navigation to the moment at which what it is about is drawn; it is left out where there is
 * no chromium (HONE_CHROMIUM). PostgreSQL first does what it does by itself every few thousand rollouts, its vacuum; not so with `--fresh`. Exit code 1: something took
 * more than 300 ms in the median.
 */

import path from "node:path";
import { scriptArguments } from "@hone/core";
import { startBus } from "@hone/messaging/testing";
import { startService } from "@hone/service-kit";
import { migrate, openDatabase, query, sql } from "@hone/storage";
import { silentLogger } from "@hone/telemetry";
import { startPostgres, temporaryFolder } from "@hone/testing";
import { findChromium, launchChromium } from "@hone/testing/chromium";
import { loadTokenizer } from "@hone/tokenizer";
import { readTracerConfig } from "../src/config.ts";
import { migrations } from "../src/db/migrations.ts";
import { tracerService } from "../src/service.ts";
import { fillRun } from "./fill-database.ts";
import { API_ROUTES, VIEWS } from "./routes.ts";

const LIMIT_MS = 300;
const EXAMPLE = path.join(import.meta.dirname, "../../../examples/01-frozen-lake");

const { values } = scriptArguments(process, {
  usage: `npm run bench:page -- [--rollouts 100000] [--rounds 7] [--fresh]

Times every answer of the page's API and every view for a run of so many rollouts; a median above ${LIMIT_MS} ms is a failure.`,
  options: {
    rollouts: { type: "string", default: "100000" },
    rounds: { type: "string", default: "7" },
    fresh: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const runs = [
  { runId: "large-1", rollouts: Number(values.rollouts) },
  { runId: "other-2", rollouts: Math.ceil(Number(values.rollouts) / 5) },
] as const;

await using folder = await temporaryFolder("bench-page");
const [bus, postgres] = await Promise.all([startBus(), startPostgres()]);
const database = await openDatabase({ url: postgres.url, schema: "tracer" });
await migrate(database, { migrations });
const beganAt = performance.now();
for (const run of runs) await fillRun(database, run, await loadTokenizer(EXAMPLE));
console.log(
  `filled with ${runs.map(({ runId, rollouts }) => `${rollouts} rollouts of ${runId}`).join(", ")} in ${seconds(beganAt)}`,
);
if (!values.fresh) await query(database, (db) => db.execute(sql`vacuum analyze`), { action: "vacuum" });
const tracer = await startService(tracerService, {
  config: readTracerConfig({
    HONE_NATS_URL: bus.server.url,
    HONE_DATABASE_URL: postgres.url,
    HONE_STATE_DIR: folder.path,
    HONE_TRACER_MAX_ROLLOUTS: "1000000",
    HONE_TRACER_MAX_BYTES: String(64 * 1024 ** 3),
  }),
  logger: silentLogger(),
});

const slow: string[] = [];
for (const route of API_ROUTES) {
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    const from = performance.now();
    const answer = await fetch(`${tracer.http.url}/api${route}`);
    const body = await answer.arrayBuffer();
    times.push(performance.now() - from);
    bytes = body.byteLength;
    if (!answer.ok) throw new Error(`${route} answered ${answer.status}: ${new TextDecoder().decode(body)}`);
  }
  report(`/api${route}`, times, `${Math.ceil(bytes / 1_024)} kB`);
}

const chromium = await findChromium(process.env.HONE_CHROMIUM);
if (chromium === undefined) console.log("the views are not timed, as there is no chromium");
else {
  const browser = await launchChromium(chromium);
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
  for (const { name, place, shown } of VIEWS) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      // As a click does it: within the page, whose files the browser has.
      await page.goto(`${tracer.http.url}/`);
      await page.locator(".run-row").first().waitFor();
      times.push(
        (await page.evaluate(`(async () => {
          const from = performance.now();
          const anchor = document.createElement("a");
          anchor.href = ${JSON.stringify(place)};
          document.body.append(anchor);
          anchor.click();
          anchor.remove();
          while (document.querySelector(${JSON.stringify(shown)}) === null) {
            if (performance.now() - from > 20000) throw new Error("not drawn within 20 s");
            await new Promise((resolve) => requestAnimationFrame(resolve));
          }
          return performance.now() - from;
        })()`)) as number,
      );
    }
    report(`view: ${name}`, times, place);
  }
  await browser.close();
}
await tracer.stop();
await database.close();
await Promise.all([bus.close(), postgres.stop()]);
console.log(slow.length === 0 ? `all within ${LIMIT_MS} ms` : `above ${LIMIT_MS} ms: ${slow.join(", ")}`);
process.exitCode = slow.length === 0 ? 0 : 1;

function report(name: string, times: readonly number[], note: string): void {
  const sorted = times.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1] ?? 0;
  if (median > LIMIT_MS) slow.push(name);
  const figures = `${median.toFixed(0).padStart(5)} ms, least ${(sorted[0] ?? 0).toFixed(0)}, first ${(times[0] ?? 0).toFixed(0)}, worst ${(sorted.at(-1) ?? 0).toFixed(0)}`;
  console.log(`${median > LIMIT_MS ? "SLOW" : "ok  "} ${figures.padEnd(48)} ${name}  ${note}`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1_000).toFixed(0)} s`;
}
