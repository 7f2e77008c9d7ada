/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The numbers from 0 to `count` - 1 in random order. */
export function shuffled(count: number, random: () => number): Int32Array {
  const order = Int32Array.from({ length: count }, (_, at) => at);
  for (let last = count - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const moved = order[last] ?? 0;
    order[last] = order[other] ?? 0;
    order[other] = moved;
  }
  return order;
}

export function mean(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return values.length === 0 ? 0 : sum / values.length;
}

/** The standard deviation that a sample estimates for what it was drawn from. */
export function deviation(values: Float64Array): number {
  const middle = mean(values);
  const squares = mean(values.map((value) => (value - middle) ** 2));
  return values.length < 2 ? 0 : Math.sqrt((squares * values.length) / (values.length - 1));
}

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/**
 * The 95% interval of the mean of `values`, by the percentile bootstrap: the means of so many samples of the same size, drawn with
 * replacement. If the values are differences between two searches for the same queries, this is the paired bootstrap.
 */
export function bootstrapInterval(values: Float64Array, resamples: number, seed: number): Interval {
  const random = randomFrom(seed);
  const count = values.length;
  const means = new Float64Array(resamples);
  for (let sample = 0; sample < resamples; sample += 1) {
    let sum = 0;
    for (let drawn = 0; drawn < count; drawn += 1) sum += values[Math.floor(random() * count)] ?? 0;
    means[sample] = count === 0 ? 0 : sum / count;
  }
  means.sort();
  const at = (share: number): number => means[Math.round(share * (resamples - 1))] ?? 0;
  return { low: at(0.025), high: at(0.975) };
}

/** Quantiles of the normal distribution: of a 95% interval, and of finding an effect in 80% of samples. */
const NORMAL_95 = 1.96;
const NORMAL_80 = 0.842;

/**
 * How many values it takes until the 95% interval of their mean lies above 0 in four cases of five, if their mean is really `gain`
 * and their standard deviation really `spread`.
 */
export function valuesNeeded(spread: number, gain: number): number {
  return Math.ceil((((NORMAL_95 + NORMAL_80) * spread) / gain) ** 2);
}
