/** Measures the machine's limits: matrix products and the bus without Hone. Other sections show their share of these. */

import { startNats } from "@hone/testing";
import { measureInTurn } from "../measure/in-turn.ts";
import { MeasuredProgram } from "../measure/measured-program.ts";
import { measured, type Section } from "../report/report.ts";
import { benchProgram } from "../repository.ts";
import type { BenchSettings } from "../section.ts";

/** Names of the rows to which other sections refer. */
export const LimitName = {
  matrixAllCores: "matrix product, all cores",
  matrixOneCore: "matrix product, one core",
  rawCall: "bare NATS request and reply",
  rawPublish: "bare JetStream publish, acknowledged",
  rawConsume: "bare JetStream consume and acknowledge",
} as const;

const MESSAGES = 5_000;
const QUICK_MESSAGES = 500;

export async function measureLimits(settings: BenchSettings): Promise<Section> {
  const { isQuick, say } = settings;
  say("the machine's limits: matrix products, bare NATS");
  const products = await measureProducts(settings);
  const messages = isQuick ? QUICK_MESSAGES : MESSAGES;
  await using nats = await startNats();
  const environment = { ...process.env, HONE_NATS_URL: nats.url };
  const messageArgs = ["--messages", String(messages)];
  const program = benchProgram("raw-bus.ts");
  await using _answerer = await MeasuredProgram.start({
    name: "the bare answerer",
    args: [program, "answer", ...messageArgs],
    environment,
  });
  await using worker = await MeasuredProgram.start({
    name: "the bare bus",
    args: [program, "work", ...messageArgs],
    environment,
  });
  const rate = (word: string) => async () => (await worker.round<{ perSecond: number }>(word)).perSecond;
  const bus = await measureInTurn(
    { ask: rate("ask"), publish: rate("publish"), consume: rate("consume") },
    settings,
  );
  const size = `2 KiB, ${messages.toLocaleString("en-US")} at once`;
  return {
    name: "limits",
    title: "Limits of this machine",
    rows: [
      measured(
        LimitName.matrixAllCores,
        "GFLOP/s",
        products.all,
        "2048-cube of float32 by onnxruntime: bounds generation and training",
      ),
      measured(LimitName.matrixOneCore, "GFLOP/s", products.one, "the same on one thread"),
      measured(LimitName.rawCall, "calls/s", bus.ask, `${size}: the client library without Hone's layers`),
      measured(LimitName.rawPublish, "messages/s", bus.publish, `${size}, into a stream on disk`),
      measured(LimitName.rawConsume, "messages/s", bus.consume, `${size}, from the same stream`),
    ],
  };
}

async function measureProducts(settings: BenchSettings): Promise<Record<"all" | "one", number[]>> {
  const args = (threads: number) => [benchProgram("matrix-product.ts"), "--threads", String(threads)];
  await using all = await MeasuredProgram.start({ name: "the matrix product", args: args(0) });
  await using one = await MeasuredProgram.start({ name: "the matrix product on one core", args: args(1) });
  const speed = (program: MeasuredProgram) => async () => (await program.round<{ gflops: number }>()).gflops;
  return await measureInTurn({ all: speed(all), one: speed(one) }, settings, 1);
}
