/** The shortest decimal that stands for a 32-bit float, as answers have scores. */
export function shortest(score: number): string {
  for (let digits = 6; digits < 10; digits += 1) {
    const text = Number(score.toPrecision(digits));
    if (Math.fround(text) === Math.fround(score)) return Number.isInteger(text) ? text.toFixed(1) : String(text);
  }
  return String(score);
}
