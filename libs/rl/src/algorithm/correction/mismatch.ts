/**
 * How far the training engine's probabilities are from those with which the tokens were sampled. With x = log old - log behaviour,
 * r = e^x, means over tokens, and M the means over the tokens of a sample:
 *
 *   kl/k1            mean -x                 KL(behaviour || old), http://joschu.net/blog/kl-approx.html
 *   kl/k3            mean r - 1 - x          the same, never negative
 *   reverse_kl/k1    mean r x                KL(old || behaviour), where r corrects for who sampled
 *   reverse_kl/k3    mean r x - r + 1        the same, never negative
 *   chi_square/token      mean r^2 - 1            chi-square(old || behaviour), the variance of weights that are not bounded
 *   chi_square/sequence   mean over samples of e^(2 sum x) - 1
 *   perplexity/<of>       mean over samples of e^(-M log <of>), <of> = old or behaviour
 *   log_perplexity/<of>   mean over samples of -M log <of>
 *   log_perplexity_gap    of samples, -M x: mean, mean of absolute values, extremes
 *   perplexity_ratio      mean over samples of e^(-M x), perplexity of old by that of behaviour
 *   ratio/<level>/mean, difference/<level>/mean   mean over samples of the mean over their tokens of a measure (measure.ts)
 *
 * A log ratio or a sum of them counts within 20 where it becomes a ratio. A sample in which nothing was sampled counts nowhere.
 */

import { Level, pool, spreadOver } from "./level.ts";
import { k3Of, Measure, measureUnits, ratioOf } from "./measure.ts";
import { type Figures, meanValue, rangeFigures } from "./summary.ts";
import type { ComparedTokens } from "./tokens.ts";

const MEASURES = [Measure.ratio, Measure.difference] as const;
const LEVELS = [Level.token, Level.segmentMean, Level.sequenceMean, Level.sequenceSum] as const;

export function mismatchFigures(tokens: ComparedTokens): Figures {
  const { logRatios, oldLogprobs, behaviourLogprobs } = tokens;
  if (logRatios.length === 0) return {};
  const ofTokens = (compute: (x: number) => number) => meanValue(logRatios.map(compute));
  const sums = pool(logRatios, Level.sequenceSum, tokens).values;
  const gaps = pool(logRatios, Level.sequenceMean, tokens).values.map((mean) => -mean);
  return {
    "kl/k1": ofTokens((x) => -x),
    "kl/k3": ofTokens(k3Of),
    "reverse_kl/k1": ofTokens((x) => ratioOf(x) * x),
    "reverse_kl/k3": ofTokens((x) => ratioOf(x) * x - ratioOf(x) + 1),
    "chi_square/token": ofTokens((x) => ratioOf(x) ** 2) - 1,
    "chi_square/sequence": meanValue(sums.map((sum) => ratioOf(sum) ** 2)) - 1,
    ...perplexityFigures("old", oldLogprobs, tokens),
    ...perplexityFigures("behaviour", behaviourLogprobs, tokens),
    "log_perplexity_gap/mean": meanValue(gaps),
    "log_perplexity_gap/absolute/mean": meanValue(gaps.map(Math.abs)),
    ...rangeFigures("log_perplexity_gap", gaps),
    "perplexity_ratio/mean": meanValue(gaps.map(ratioOf)),
    ...Object.fromEntries(
      MEASURES.flatMap((measure) =>
        LEVELS.map((level) => [
          `${measure}/${level}/mean`,
          meanOfSamples(spreadOver(measureUnits(measure, level, tokens)), tokens),
        ]),
      ),
    ),
  };
}

/** Every sample counts the same, however long it is. */
function meanOfSamples(values: Float64Array, tokens: ComparedTokens): number {
  return meanValue(pool(values, Level.sequenceMean, tokens).values);
}

function perplexityFigures(name: string, logprobs: ArrayLike<number>, tokens: ComparedTokens): Figures {
  const logs = pool(Float64Array.from(logprobs), Level.sequenceMean, tokens).values.map((mean) => -mean);
  return {
    [`perplexity/${name}`]: meanValue(logs.map(Math.exp)),
    [`log_perplexity/${name}`]: meanValue(logs),
  };
}
