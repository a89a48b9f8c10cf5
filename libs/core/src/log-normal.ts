/**
 * Draws from a log-normal distribution, as times of tools and lengths of answers are. The 99th percentile is
 * exp(2.33 sigma - sigma^2 / 2) times the mean, which is largest, 15, at a sigma of 2.33.
 * @param sigma standard deviation of the logarithm; 0 = always the mean.
 * @param random draws uniformly from [0, 1).
 */
export function drawLogNormal(mean: number, sigma: number, random: () => number): number {
  const middle = mean * Math.exp(-(sigma ** 2) / 2);
  // Box and Muller's normal variable; 1 - random() is never 0.
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return middle * Math.exp(sigma * normal);
}
