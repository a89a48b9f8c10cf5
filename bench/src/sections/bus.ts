/** Measures the bus as Hone uses it, in turn with Ray if that is installed. */

import { access } from "node:fs/promises";
import path from "node:path";
import { startNats } from "@hone/testing";
import { measureInTurn } from "../measure/in-turn.ts";
import { MeasuredProgram } from "../measure/measured-program.ts";
import { startSpanSink } from "../measure/span-sink.ts";
import { type MeasuredRow, measured, missing, type Row, type Section } from "../report/report.ts";
import { summarise } from "../report/summarise.ts";
import { benchProgram, REPOSITORY } from "../repository.ts";
import type { BenchSettings, Limits } from "../section.ts";
import { LimitName } from "./limits.ts";

const CALLS = 10_000;
const QUICK_CALLS = 500;
const MESSAGES = 5_000;
const QUICK_MESSAGES = 500;
const CALL_MEANING = "2 KiB each way, protobuf, context in headers, a span on both sides, exported";
const RAY_MEANING = "echo of 2 KiB by one async actor that takes 1,000 at once";

interface CallRound {
  readonly calls: number;
  readonly seconds: number;
}

export async function measureBus(settings: BenchSettings, limits: Limits): Promise<Section> {
  const { isQuick, say } = settings;
  const calls = isQuick ? QUICK_CALLS : CALLS;
  await using nats = await startNats();
  await using sink = await startSpanSink();
  const environment = { ...process.env, HONE_NATS_URL: nats.url };
  const spans = ["--spans", sink.url];
  await using stack = new AsyncDisposableStack();
  const start = async (name: string, args: readonly string[], command?: string) =>
    stack.use(
      await MeasuredProgram.start({ name, args, environment, ...(command === undefined ? {} : { command }) }),
    );

  say("the bus: typed and traced calls, and work through a stream");
  const callArgs = [...spans, "--calls", String(calls)];
  await start("the answerer", [benchProgram("bus-call.ts"), "answer", ...callArgs]);
  const asker = await start("the asker", [benchProgram("bus-call.ts"), "ask", ...callArgs]);
  const python = path.join(settings.peersFolder, "torch", "bin", "python");
  const ray = (await exists(python))
    ? await start("Ray", [path.join(REPOSITORY, "bench", "peers", "calls_ray.py"), String(calls)], python)
    : undefined;
  const rate = (program: MeasuredProgram) => async () => {
    const round = await program.round<CallRound>();
    return round.calls / round.seconds;
  };
  // Both programs are loaded, and each is idle during the other's rounds.
  const answered = await measureInTurn(
    { hone: rate(asker), ...(ray === undefined ? {} : { ray: rate(ray) }) },
    settings,
  );
  if (sink.receivedBytes === 0)
    throw new RangeError("no spans of the calls arrived, so their export was not measured");
  const atOnce = `${calls.toLocaleString("en-US")} at once`;
  const honeCalls = measured(
    "call, typed and traced",
    "calls/s",
    answered.hone,
    `${CALL_MEANING}; ${atOnce}`,
  );
  const work = await measureWork(settings, spans, environment);
  return {
    name: "bus",
    title: "The bus",
    rows: [
      honeCalls,
      ...share(honeCalls, limits, LimitName.rawCall),
      ...rayRows(answered.hone, answered.ray, atOnce),
      work.publish,
      ...share(work.publish, limits, LimitName.rawPublish),
      work.consume,
      ...share(work.consume, limits, LimitName.rawConsume),
    ],
  };
}

async function measureWork(
  settings: BenchSettings,
  spans: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<Record<"publish" | "consume", MeasuredRow>> {
  const messages = settings.isQuick ? QUICK_MESSAGES : MESSAGES;
  await using worker = await MeasuredProgram.start({
    name: "work through a stream",
    args: [benchProgram("bus-work.ts"), ...spans, "--messages", String(messages)],
    environment,
  });
  const rate = (word: string) => async () => (await worker.round<{ perSecond: number }>(word)).perSecond;
  const { publish, consume } = await measureInTurn(
    { publish: rate("publish"), consume: rate("consume") },
    settings,
  );
  return {
    publish: measured(
      "jobs published",
      "messages/s",
      publish,
      "2 KiB, typed, traced, duplicate check, acknowledged",
    ),
    consume: measured(
      "jobs consumed",
      "messages/s",
      consume,
      "the same, decoded, handled by 1,000 at once, acknowledged",
    ),
  };
}

/** Ratios of figures of the same round. */
function rayRows(hone: readonly number[], ray: readonly number[] | undefined, atOnce: string): Row[] {
  const meaning = `${RAY_MEANING}; ${atOnce}`;
  const ratioMeaning = "Hone's calls for each of Ray's, round by round";
  if (ray === undefined) {
    const reason = "not installed";
    return [
      missing("call, Ray", "calls/s", reason, meaning),
      missing("Hone to Ray", "x", reason, ratioMeaning),
    ];
  }
  const ratios = hone.map((value, round) => value / ray[round]!);
  return [measured("call, Ray", "calls/s", ray, meaning), measured("Hone to Ray", "x", ratios, ratioMeaning)];
}

/** The share of the machine's limit that a row reaches, if the limits were measured in this sitting. */
function share(row: MeasuredRow, limits: Limits, limit: string): Row[] {
  const most = limits[limit];
  if (most === undefined) return [];
  const percent = (100 * summarise(row.values).median) / most;
  return [measured("  of the limit", "%", [percent], limit)];
}

async function exists(file: string): Promise<boolean> {
  try {
    await access(file);
    return true;
  } catch {
    return false;
  }
}
