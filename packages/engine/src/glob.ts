/**
 * Whether a text matches a pattern, whose `*` stand for anything.
 *
 * Takes at worst as many steps as the product of both lengths, however many stars there are: a regular expression made of a
 * pattern that a stranger sends may take for ever.
 *
 * @param one what stands for any one character but a star; by default nothing does
 * @param spend is told how many steps it took
 */
export function matchesGlob(pattern: string, text: string, one?: '?', spend?: (steps: number) => void): boolean {
  let steps = 0;
  let at = 0;
  let read = 0;
  // The last star, and how much of the text it stands for so far.
  let star = -1;
  let taken = 0;
  while (read < text.length) {
    steps += 1;
    if (pattern[at] === '*') {
      star = at;
      taken = read;
      at += 1;
    } else if (at < pattern.length && (pattern[at] === text[read] || (pattern[at] === one && text[read] !== '*'))) {
      at += 1;
      read += 1;
    } else if (star >= 0) {
      taken += 1;
      read = taken;
      at = star + 1;
    } else {
      spend?.(steps);
      return false;
    }
  }
  spend?.(steps);
  while (pattern[at] === '*') at += 1;
  return at === pattern.length;
}
