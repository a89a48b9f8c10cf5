/** Compares loss and gradients of a microbatch with PyTorch, eager and compiled. */

import { Quantization } from "@hone/rl";
import { honeTraining } from "../measure/engine-calls.ts";
import type { Comparison } from "./comparison.ts";
import { Contender } from "./contender.ts";
import { atLeast, targetIn } from "./precision.ts";
import { type MeasurePeers, measureParts, productShare } from "./rows.ts";

const FULL = { rows: 4, tokens: 256 };
const QUICK = { rows: 1, tokens: 32 };
/** Rounds that are not counted, in which both sides compile and allocate memory. */
const WARM_UP_ROUNDS = 1;

export const measureTraining: MeasurePeers = async (bench) => {
  const { rows, tokens } = bench.isQuick ? QUICK : FULL;
  const size = `${rows} x ${tokens} tokens`;
  bench.say(`training on ${size}; PyTorch is compiled first`);
  const shape = ["--shape", "135m", "--rows", String(rows), "--rowTokens", String(tokens)];
  const { precision } = bench;
  const modes = precision.hone === Quantization.int8 ? ["--int8", "--int8Gradients"] : [];
  await using hone = await Contender.start(honeTraining([...shape, "--loss", "cross_entropy", ...modes]));
  const startTorch = (mode: string) => {
    const args = [bench.model, mode, String(rows), String(tokens), precision.peers] as const;
    return Contender.startPeer(`PyTorch ${mode}`, bench.peersFolder, "torch", ["train_torch.py", ...args]);
  };
  await using eager = await startTorch("eager");
  await using compiled = await startTorch("compile");
  const { figures, product } = await measureParts(
    bench,
    [
      {
        contender: hone,
        async measure(program) {
          const { sampleTokens, ms, updateMs } = await program.round<HoneRound>();
          return (1_000 * sampleTokens) / (ms - updateMs);
        },
      },
      ...[eager, compiled].map((contender) => ({
        contender,
        async measure(program: Parameters<Parameters<Contender["measure"]>[0]>[0]) {
          const round = await program.round<{ tokens: number; seconds: number }>();
          return round.tokens / round.seconds;
        },
      })),
    ],
    WARM_UP_ROUNDS,
  );
  const row: Omit<Comparison, "peer" | "target"> = {
    name: `loss and gradients of ${size}${precision.title}`,
    unit: "tokens/s",
    better: "higher",
    hone: figures[0]!,
    ...productShare(figures[0]!, product, bench.work.trainedToken),
  };
  return {
    comparisons: [
      {
        ...row,
        peer: { name: eager.name, figures: figures[1]! },
        target: targetIn(precision, { float32: atLeast(1, 1.15), best: atLeast(0.9, 1.2) }),
      },
      {
        ...row,
        peer: { name: compiled.name, figures: figures[2]! },
        target: targetIn(precision, { float32: atLeast(0.8, 0.95), best: atLeast(0.9, 1.2) }),
      },
    ],
    details: [],
  };
};

/** The update is measured separately and not counted. */
interface HoneRound {
  readonly ms: number;
  readonly updateMs: number;
  readonly sampleTokens: number;
}
