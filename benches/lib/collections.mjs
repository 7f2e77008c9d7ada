// Collections on disk, and what is drawn of them: the same with every run.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** The rows of a zipped file of JSON lines. */
export function rows(file) {
  return gunzipSync(readFileSync(file))
    .toString()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

/**
 * Draws from lists by a seed, each time something else.
 *
 * @param {number} seed
 * @returns {(list: readonly any[], count: number) => any[]} gives `count` of a list, in random order
 */
export function sampler(seed) {
  let state = seed;
  const random = () => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state / 2147483648;
  };
  return (list, count) => {
    const drawn = [...list];
    for (let last = drawn.length - 1; last > 0; last -= 1) {
      const other = Math.floor(random() * (last + 1));
      [drawn[last], drawn[other]] = [drawn[other], drawn[last]];
    }
    return drawn.slice(0, count);
  };
}
