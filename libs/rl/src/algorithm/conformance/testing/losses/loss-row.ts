/**
 * Rows of the conformance table that engines answer: each puts a golden case to an engine, as terms with the numbers of the
 * trained tokens, and compares the loss and its gradient. Letters: E entries, which are the tokens under the mask, row by row.
 */

import { groupMeans, groupsOf } from "../../../../packing/groups.ts";
import type { LossTerm } from "../../../loss/loss.ts";
import { type ChosenLoss, chosenLoss, inputsOf, type LossName, lossSchema } from "../../../loss/registry.ts";
import { isCounted } from "../../../loss/token-cut.ts";
import type { GroupInput, TokenInput } from "../../../loss/token-numbers.ts";
import { compact, denseOf } from "../dense.ts";
import type { Matrix, Question } from "../golden.ts";
import type { Check, Row } from "../row.ts";

/** What an engine computes: sum over entries of weight * (sum of the terms of the entry). */
export interface LossTask {
  readonly terms: readonly LossTerm<LossName>[];
  /** [E] what the loss is a function of: log-probabilities, or the values of a critic. */
  readonly scores: readonly number[];
  /** [E] each, by name: those that the terms read. */
  readonly inputs: Readonly<Partial<Record<TokenInput, readonly number[]>>>;
  /** [E] */
  readonly weights: readonly number[];
}

export interface LossAnswer {
  readonly loss: number;
  /** [E] d loss / d score. */
  readonly gradient: readonly number[];
}

/** A case as an engine gets it. */
export interface AskedLoss {
  readonly task: LossTask;
  /** Compares what the engine found with the case. */
  check(answer: LossAnswer): readonly Check[];
}

export interface LossRow extends Omit<Row, "answer"> {
  /** @returns undefined where no engine has anything to compute */
  ask(question: Question): AskedLoss | undefined;
}

/** Numbers of all rows by positions; noise where the mask is 0. */
export interface LossArrays {
  readonly mask: Matrix;
  readonly logprob: Matrix;
  readonly behaviour: Matrix;
  readonly advantage: Matrix;
  readonly reference?: Matrix;
  /** One for each row. */
  readonly rewards?: readonly number[];
}

/** Options of `algorithm.loss`. */
export type LossOptions = Readonly<Record<string, unknown>> & { readonly kind: string };

/** A loss with everything that engines and figures need. */
export class LossSetting {
  readonly loss: ChosenLoss;
  readonly arrays: LossArrays;
  /** [E] */
  readonly selected: readonly boolean[] | undefined;

  constructor(options: LossOptions, arrays: LossArrays) {
    this.loss = chosenLoss(lossSchema.parse(options));
    this.arrays = arrays;
    this.selected = this.loss.select?.({
      logprobs: this.entries(arrays.logprob),
      behaviourLogprobs: this.entries(arrays.behaviour),
      advantages: this.entries(arrays.advantage),
    });
  }

  /** [E] */
  entries(values: Matrix): number[] {
    return values.flatMap((row, i) => compact(row, this.arrays.mask[i]!));
  }

  /** @param weights rows by positions. @param more terms beside the loss */
  task(weights: Matrix, more: readonly LossTerm<LossName>[] = []): LossTask {
    const terms = [this.loss.term, ...more];
    const inputs = Object.fromEntries(inputsOf(terms).map((name) => [name, this.#input(name)]));
    return { terms, scores: this.entries(this.arrays.logprob), inputs, weights: this.entries(weights) };
  }

  /** The figure `clip_fraction`. */
  clipFraction(): number {
    const { logprob, behaviour, advantage } = this.arrays;
    const [now, then, worth] = [logprob, behaviour, advantage].map((values) => this.entries(values));
    const ratios = now!.map((value, entry) => value - then![entry]!);
    const groups = this.loss.group === undefined ? [...ratios.keys()] : this.#groups(this.loss.group);
    const means = groupMeans(ratios, groups);
    const clipped = now!.filter((value, entry) =>
      isCounted(
        this.loss.cut({
          ratio: Math.exp(ratios[entry]!),
          groupRatio: Math.exp(means[entry]!),
          logprob: value,
          behaviourLogprob: then![entry]!,
          advantage: worth![entry]!,
          reward: 0,
          isSelected: this.selected?.[entry] ?? false,
        }),
      ),
    );
    return clipped.length / now!.length;
  }

  #input(name: TokenInput): readonly number[] {
    const { mask, behaviour, advantage, reference, rewards } = this.arrays;
    switch (name) {
      case "behaviourLogprob":
        return this.entries(behaviour);
      case "advantage":
        return this.entries(advantage);
      case "referenceLogprob":
        return this.entries(reference!);
      case "reward":
        return this.entries(mask.map((row, i) => row.map(() => rewards![i]!)));
      case "selected":
        return this.selected!.map(Number);
      case "sequence":
      case "segment":
        return this.#groups(name);
      case "oldValue":
      case "return":
        throw new TypeError(`a loss of the policy reads no ${name}`);
    }
  }

  #groups(kind: GroupInput): number[] {
    return [
      ...groupsOf(
        this.arrays.mask.map((lossMask) => ({ lossMask })),
        kind,
      ),
    ];
  }
}

/** What is expected where Hone answers a quirk otherwise. */
export interface Differing {
  readonly quirk: string;
  /** Rows by positions. */
  readonly gradient: Matrix;
  readonly loss: number;
}

/** @param added what the case's loss holds beside the terms. */
export function lossChecks(
  mask: Matrix,
  { loss, gradient }: LossAnswer,
  { differing, added = 0 }: { readonly differing?: Differing | undefined; readonly added?: number } = {},
): Check[] {
  const expected = (value: Matrix | number | undefined) =>
    differing === undefined ? {} : { expected: value!, quirk: differing.quirk };
  return [
    { field: "loss", actual: loss + added, ...expected(differing?.loss) },
    { field: "gradient", actual: denseOf(mask, gradient), ...expected(differing?.gradient) },
  ];
}
