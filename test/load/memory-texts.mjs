// Texts, numbers and lists by chance, no longer together than a request may be: what `memory-bodies.mjs` is made of.
import { many } from './expensive-requests.mjs';

/** What a text is made of: some characters become six in JSON, some take four bytes, some stand for more where they are a pattern. */
const PIECES = ['x', '"', '\u0001', 'é', '😀', '0', "'x'", 'yyyy-MM-dd ', 'w1 ', '{{f}}', '\\', '<'];
/** Lengths about limits that there are or may be, and far beyond. */
export const LENGTHS = [1, 50, 200, 999, 1000, 1001, 10_000, 100_000, 1_000_000];
/** Bytes that a request has at most: what is made by chance takes from what is left of them. */
export const MOST_BYTES = 8_000_000;

const bytesOf = (value) => Buffer.byteLength(JSON.stringify(value));

/** A text that is one of so many in its list; or the same for so many. */
export function text(random, of = 1, copies = 1) {
  const piece = random.pick(PIECES);
  const most = random.left / 4 / of / copies / (bytesOf(piece) - 2);
  const times = Math.ceil(Math.min(random.pick(LENGTHS) / piece.length, most));
  random.left = Math.max(0, random.left - times * copies * (bytesOf(piece) - 2));
  return piece.repeat(times);
}

/** A number up to a limit, often just that, some times one more; less where that many would have more bytes than are left. */
export function count(random, limit, each = 0) {
  const whole = random.pick([limit, limit, Math.ceil(limit / 2), Math.ceil(limit / 10), Math.ceil(limit / 100)]);
  const wanted = random.chance(0.03) ? limit + 1 : whole;
  const n = each === 0 ? wanted : Math.max(1, Math.min(wanted, Math.floor(random.left / 2 / each)));
  random.left = Math.max(0, random.left - n * each);
  return n;
}

export const listed = (random, limit, make, each = 30) => {
  const n = count(random, limit, each);
  return many(n, (at) => make(at, n));
};
/** The same so many times. */
export const copied = (random, limit, made) => count(random, limit, bytesOf(made));

/** A name of an aggregation, with which so many begin. */
export const nameOf = (random, copies = 1, chance = 0.4) =>
  random.chance(chance) ? text(random, 1, copies).replaceAll(/[[\]>]/gu, '') : '';
/** An object with so many members: their names are short, or as long as `text` makes them. */
export const named = (random, limit, make) => {
  const n = count(random, limit, 50);
  const name = nameOf(random, n, 0.6);
  return Object.fromEntries(many(n, (at) => [`${at}${name}`, make(at)]));
};
/** Some of these members, each with a probability. */
export const some = (random, members, probability = 0.3) =>
  Object.fromEntries(
    Object.entries(members)
      .filter(() => random.chance(probability))
      .map(([name, make]) => [name, typeof make === 'function' ? make() : make]),
  );
/** One of these; what takes from what is left is a function, so that only the one does. */
export const either = (random, all) => {
  const one = random.pick(all);
  return typeof one === 'function' ? one() : one;
};
