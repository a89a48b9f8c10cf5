/** What training did with a rollout's tokens, as the ledger has it: rows for the card of a selected token. */

import { read, runPath } from "../../api.ts";
import type { RolloutAnswer, RolloutFiguresView, TokenView } from "../../api-types.ts";
import { number, percent, signed } from "../../format.ts";
import { cutText } from "../parts.ts";

type PartFigures = RolloutFiguresView["parts"][number];
/** A token, with what holds for all of its part. */
type TokenFigures = PartFigures["tokens"][number] & Pick<PartFigures, "role" | "policy">;
type Row = readonly [name: string, value: string];

/**
 * Reads the record of a rollout.
 * @returns the rows and the advantage of a token: none until it is read, and none where nothing is kept.
 */
export function trainedTokens(
  runId: string,
  rollout: RolloutAnswer,
  signal: AbortSignal,
): {
  readonly rowsOf: (token: TokenView) => readonly Row[];
  readonly advantageOf: (token: TokenView) => number | undefined;
  readonly reading: Promise<void>;
} {
  const records = new Map<TokenView, TokenFigures>();
  return {
    rowsOf: (token) => {
      const record = records.get(token);
      return record === undefined ? [] : rowsOf(record);
    },
    advantageOf: (token) => records.get(token)?.advantage,
    reading: readRecords(runId, rollout, signal, records),
  };
}

async function readRecords(
  runId: string,
  rollout: RolloutAnswer,
  signal: AbortSignal,
  records: Map<TokenView, TokenFigures>,
): Promise<void> {
  // Where nothing is recorded, or no trainer answers, the tokens are shown without it.
  const path = runPath(runId, "rollouts", rollout.slot, "tokens");
  const { parts } = await read<RolloutFiguresView>(path, { signal, query: { orNone: 1 } });
  const recorded = parts.flatMap(({ role, policy, tokens }) =>
    tokens.map((token) => ({ ...token, role, policy })),
  );
  const ofSamples = Map.groupBy(recorded, ({ sample }) => sample);
  const next = new Map<number, number>();
  for (const { sample, tokens } of [...rollout.turns, ...rollout.tails]) {
    for (const token of tokens) {
      if (!token.isSampled) continue;
      const at = next.get(sample) ?? 0;
      next.set(sample, at + 1);
      const record = ofSamples.get(sample)?.[at];
      if (record !== undefined) records.set(token, record);
    }
  }
}

function rowsOf({
  role,
  policy,
  advantage,
  passes,
  parts,
  referenceLogprob,
  weight,
  share,
}: TokenFigures): Row[] {
  const last = passes.at(-1);
  const rows: (Row | false | undefined)[] = [
    role !== null && ["role", role],
    policy !== null && ["learnt by the policy", policy],
    last && ["logprob when trained", number(last.logprob, 4)],
    referenceLogprob !== null && ["logprob of the reference", number(referenceLogprob, 4)],
    last && ["ratio", number(last.ratio, 4)],
    last && ["cut", cutText(last.cut)],
    ["advantage", signed(advantage, 3)],
    ["advantage: episode", signed(parts.episode, 3)],
    parts.turns !== 0 && ["advantage: turns", signed(parts.turns, 3)],
    parts.kl !== 0 && ["advantage: KL", signed(parts.kl, 3)],
    parts.taught !== 0 && ["advantage: teachers", signed(parts.taught, 3)],
    parts.mean !== null && ["compared with", number(parts.mean, 4)],
    parts.scale !== null && ["divided by", number(parts.scale, 4)],
    ["weight in the loss", number(weight, 6)],
    last && ["d loss / d logprob", number(last.coefficient, 6)],
    [policy === null ? "share of the step's gradient" : "share of the policy's gradient", percent(share, 3)],
  ];
  return rows.filter((row) => row !== false && row !== undefined);
}
