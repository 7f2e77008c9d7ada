/** A number, whether what has it is relevant, and how much the observation counts. */
export type Observation = readonly [x: number, label: boolean, weight: number];

/** The log-odds of relevance as a line: `slope · x + intercept`. */
export interface Line {
  readonly slope: number;
  readonly intercept: number;
}

const MOST_STEPS = 100;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

/** Fits a logistic regression (Platt scaling) by Newton's method, with steps that are halved until the loss does not grow. */
export function logisticFit(points: readonly Observation[]): Line {
  const loss = (slope: number, intercept: number): number =>
    sum(points.map(([x, label, weight]) => weight * Math.log1p(Math.exp((label ? -1 : 1) * (slope * x + intercept)))));
  let [slope, intercept] = [0, 0];
  for (let step = 0; step < MOST_STEPS; step += 1) {
    let [gs, gi, hss, hsi, hii] = [0, 0, 1e-9, 0, 1e-9];
    for (const [x, label, weight] of points) {
      const p = 1 / (1 + Math.exp(-(slope * x + intercept)));
      const [error, curve] = [weight * (Number(label) - p), weight * p * (1 - p)];
      gs += error * x;
      gi += error;
      hss += curve * x * x;
      hsi += curve * x;
      hii += curve;
    }
    const determinant = hss * hii - hsi * hsi;
    const [ds, di] = [(hii * gs - hsi * gi) / determinant, (hss * gi - hsi * gs) / determinant];
    let scale = 1;
    while (scale > 1e-6 && loss(slope + scale * ds, intercept + scale * di) > loss(slope, intercept)) scale /= 2;
    slope += scale * ds;
    intercept += scale * di;
    if (Math.abs(ds) + Math.abs(di) < 1e-9 || scale <= 1e-6) break;
  }
  return { slope, intercept };
}
