/**
 * Compares sampling with serving engines: different prompts, groups that share a prompt, and conversations.
 *
 * G1: all contenders get the same prompts in a round, and every sample has the same length, so that rates can be compared.
 * G2: all conversations advance turn by turn together, as in vLLM's batches; observations are random tokens.
 */

import { deriveSeed, Random } from "@hone/core";
import { generateBatch, honeGenerator, randomIds } from "../measure/engine-calls.ts";
import type { MeasuredProgram } from "../measure/measured-program.ts";
import { measured, type Row } from "../report/report.ts";
import type { Comparison, Target } from "./comparison.ts";
import { Contender } from "./contender.ts";
import { atLeast, targetIn } from "./precision.ts";
import { type MeasurePeers, measureParts, type Part, type PeerBench, productShare } from "./rows.ts";

/** The contenders of the requested rows, each started once. */
interface Cast {
  readonly hone: Contender;
  readonly vllm: Contender;
  readonly transformers: Contender;
}

export const measureGeneration: MeasurePeers = async (bench, names) => {
  await using stack = new AsyncDisposableStack();
  const start = async (isNeeded: boolean, begin: () => Promise<Contender>) =>
    stack.use(isNeeded ? await begin() : Contender.absent("", "not asked for"));
  bench.say("generation: loading the engines");
  const needsVllm = names.some((name) => name !== "turns");
  const cast: Cast = {
    hone: await start(true, () => Contender.start(honeGenerator(bench.model, bench.precision.hone))),
    vllm: await start(needsVllm, () =>
      Contender.startPeer("vLLM-CPU", bench.peersFolder, "vllm", [
        "generate_vllm.py",
        bench.model,
        bench.precision.peers,
      ]),
    ),
    transformers: await start(names.includes("prompts"), () =>
      Contender.startPeer("transformers", bench.peersFolder, "torch", [
        "generate_hf.py",
        bench.model,
        bench.precision.peers,
      ]),
    ),
  };
  const comparisons: Comparison[] = [];
  const details: Row[] = [];
  for (const name of names) {
    const rows = await ROWS[name]!(bench, cast);
    comparisons.push(...rows.comparisons);
    details.push(...rows.details);
  }
  return { comparisons, details };
};

type MeasureRow = (bench: PeerBench, cast: Cast) => ReturnType<MeasurePeers>;

const ROWS: Readonly<Record<string, MeasureRow>> = {
  async prompts(bench, { hone, vllm, transformers }) {
    const shape = bench.isQuick
      ? { prompts: 4, promptTokens: 16, samples: 1, newTokens: 8 }
      : { prompts: 32, promptTokens: 128, samples: 1, newTokens: 64 };
    return await measureBatches(bench, shape, hone, [
      {
        peer: vllm,
        target: targetIn(bench.precision, { float32: atLeast(1.1, 1.35), best: atLeast(1.3, 1.7) }),
      },
      { peer: transformers, target: atLeast(1.7, 2.1) },
    ]);
  },
  async groups(bench, { hone, vllm }) {
    const shape = bench.isQuick
      ? { prompts: 2, promptTokens: 16, samples: 2, newTokens: 8 }
      : { prompts: 4, promptTokens: 112, samples: 8, newTokens: 64 };
    return await measureBatches(bench, shape, hone, [
      {
        peer: vllm,
        target: targetIn(bench.precision, { float32: atLeast(1.5, 2.2), best: atLeast(2, 2.6) }),
      },
    ]);
  },
  sessions: measureSessions,
  async turns(bench, { hone }) {
    const shape = bench.isQuick ? { ...TURNS, turns: 4 } : TURNS;
    bench.say(`one session of ${shape.turns} turns`);
    const measure = async (program: MeasuredProgram, seed: number) => {
      const seconds = await converse(program, bench.work.vocabSize, shape, seed);
      return seconds.at(-1)! / seconds[1]!;
    };
    const { figures } = await measureParts(bench, [seeded(hone, measure)], 1);
    return {
      comparisons: [
        {
          name: `one session, ${shape.turns} turns of ${shape.newTokens} new tokens: last turn over turn 2`,
          unit: "x",
          better: "lower",
          hone: figures[0]!,
          target: { kind: "at most", bar: 1.5, aim: 1.2 },
        },
      ],
      details: [],
    };
  },
};

interface BatchShape {
  readonly prompts: number;
  readonly promptTokens: number;
  readonly samples: number;
  readonly newTokens: number;
}

async function measureBatches(
  bench: PeerBench,
  shape: BatchShape,
  hone: Contender,
  peers: readonly { readonly peer: Contender; readonly target: Target }[],
): ReturnType<MeasurePeers> {
  const { prompts, promptTokens, samples, newTokens } = shape;
  const name =
    samples === 1
      ? `${prompts} different prompts of ${promptTokens}, ${newTokens} new tokens each`
      : `${prompts} prompts of ${promptTokens} x ${samples} samples x ${newTokens} new tokens`;
  const title = `${name}${bench.precision.title}`;
  bench.say(title);
  const sampled = prompts * samples * newTokens;
  const measure = async (program: MeasuredProgram, seed: number) => {
    const random = new Random(deriveSeed(seed, name));
    const batch = Array.from({ length: prompts }, () =>
      randomIds(random, bench.work.vocabSize, promptTokens),
    );
    const { seconds } = await generateBatch(program, { prompts: batch, samples, newTokens, seed });
    return sampled / seconds;
  };
  const parts = [hone, ...peers.map(({ peer }) => peer)].map((contender) => seeded(contender, measure));
  const { figures, product } = await measureParts(bench, parts, 1);
  const { readToken, generatedToken } = bench.work;
  const flops = generatedToken + (prompts * promptTokens * readToken) / sampled;
  return {
    comparisons: peers.map(({ peer, target }, index) => ({
      name: title,
      unit: "new tokens/s",
      better: "higher",
      hone: figures[0]!,
      peer: { name: peer.name, figures: figures[index + 1]! },
      target,
      ...productShare(figures[0]!, product, flops),
    })),
    details: [],
  };
}

interface SessionShape {
  readonly sessions: number;
  readonly firstTokens: number;
  readonly turns: number;
  readonly newTokens: number;
  readonly observedTokens: number;
}

const SESSIONS: SessionShape = {
  sessions: 8,
  firstTokens: 100,
  turns: 16,
  newTokens: 30,
  observedTokens: 20,
};
const TURNS: SessionShape = { ...SESSIONS, sessions: 1, turns: 32 };

async function measureSessions(bench: PeerBench, { hone, vllm }: Cast): ReturnType<MeasurePeers> {
  const shape = bench.isQuick ? { ...SESSIONS, sessions: 2, turns: 3 } : SESSIONS;
  const { sessions, firstTokens, turns, newTokens, observedTokens } = shape;
  const name = `${sessions} sessions x ${turns} turns of ${newTokens} new and ${observedTokens} observed tokens${bench.precision.title}`;
  bench.say(name);
  const growth = new Map<Contender, number[]>([
    [hone, []],
    [vllm, []],
  ]);
  const sampled = sessions * turns * newTokens;
  const parts = [hone, vllm].map((contender) =>
    seeded(contender, async (program, seed) => {
      const seconds = await converse(program, bench.work.vocabSize, shape, seed);
      growth.get(contender)!.push(seconds.at(-1)! / seconds[1]!);
      return sampled / seconds.reduce((sum, each) => sum + each, 0);
    }),
  );
  // Earlier rows, if any, were the warm-up. A round is long, and its first turn does not count for the growth.
  const { figures, product } = await measureParts(bench, parts, 0);
  const { readToken, generatedToken } = bench.work;
  const read = sessions * (firstTokens + (turns - 1) * observedTokens);
  return {
    comparisons: [
      {
        name,
        unit: "new tokens/s",
        better: "higher",
        hone: figures[0]!,
        peer: { name: vllm.name, figures: figures[1]! },
        target: targetIn(bench.precision, { float32: atLeast(1.5, 2.5), best: atLeast(1.6, 2.2) }),
        ...productShare(figures[0]!, product, generatedToken + (read * readToken) / sampled),
      },
    ],
    details: [...growth]
      .filter(([, values]) => values.length > 0)
      .map(([{ name: who }, values]) =>
        measured(
          `sessions, last turn over turn 2, ${who}${bench.precision.title}`,
          "x",
          values,
          "contexts grow meanwhile",
          "lower",
        ),
      ),
  };
}

/** @returns the seconds of each turn. */
async function converse(
  program: MeasuredProgram,
  vocabSize: number,
  { sessions, firstTokens, turns, newTokens, observedTokens }: SessionShape,
  seed: number,
): Promise<number[]> {
  const key = `${sessions}-${turns}-${seed}`;
  const random = new Random(deriveSeed(seed, key));
  const contexts = Array.from({ length: sessions }, () => randomIds(random, vocabSize, firstTokens));
  const names = contexts.map((_, session) => `${key}-${session}`);
  const seconds: number[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const batch = { prompts: contexts, samples: 1, newTokens, sessions: names, seed: seed + turn * sessions };
    const answer = await generateBatch(program, batch);
    seconds.push(answer.seconds);
    contexts.forEach((context, session) => {
      context.push(...answer.ids[session]!, ...randomIds(random, vocabSize, observedTokens));
    });
  }
  return seconds;
}

/** All contenders have the same seed in a round (G1), and each round has another one. */
function seeded(
  contender: Contender,
  measure: (program: MeasuredProgram, seed: number) => Promise<number>,
): Part {
  let round = 0;
  return { contender, measure: (program) => measure(program, 1 + 10_000 * round++) };
}
