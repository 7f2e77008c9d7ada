import { isIPv6 } from 'node:net';

/** Failed attempts of an address within {@link WINDOW_MS}, after which further ones are refused as too many. Right keys are let in. */
export const MOST_FAILURES = 20;

/** Milliseconds after the first failure until an address begins anew. */
export const WINDOW_MS = 60_000;

/** Addresses that are remembered; the one that failed longest ago goes first. */
const MOST_ADDRESSES = 10_000;

interface Failures {
  count: number;
  readonly since: number;
}

/** Failed attempts to authenticate, by address. */
export class Attempts {
  readonly #failures = new Map<string, Failures>();

  /** Seconds until the address may try again; 0 if it may now. */
  wait(address: string, now: number): number {
    if (this.#failures.size === 0) return 0;
    const found = this.#failures.get(network(address));
    if (found === undefined || found.count < MOST_FAILURES) return 0;
    return Math.max(0, Math.ceil((found.since + WINDOW_MS - now) / 1000));
  }

  /** Counts a failure; how many the address has had in its window. */
  failed(address: string, now: number): number {
    const key = network(address);
    const found = this.#failures.get(key);
    if (found !== undefined && now - found.since < WINDOW_MS) {
      found.count += 1;
      return found.count;
    }
    this.#failures.delete(key);
    const oldest = this.#failures.size < MOST_ADDRESSES ? undefined : this.#failures.keys().next().value;
    if (oldest !== undefined) this.#failures.delete(oldest);
    this.#failures.set(key, { count: 1, since: now });
    return 1;
  }
}

/** What one caller can hold of addresses: with IPv6 a network of 64 bits. */
export function network(address: string): string {
  if (!isIPv6(address)) return address;
  const groups = groupsOf(address);
  const [, , , , , mapped, high = 0, low = 0] = groups;
  // An address of IPv4 as a socket for both shows it.
  if (mapped === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  }
  return groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':');
}

/** The eight groups of an address of IPv6, also of those that `::` stands for. */
function groupsOf(address: string): readonly number[] {
  // Behind `%` is the interface that it was reached through.
  const [text = ''] = address.split('%', 1);
  const [front = [], back] = text.split('::', 2).map(written);
  if (back === undefined) return front;
  return [...front, ...Array<number>(8 - front.length - back.length).fill(0), ...back];
}

/** The groups that are written in a part of an address; the last two may be written as one of IPv4. */
function written(part: string): readonly number[] {
  if (part === '') return [];
  return part.split(':').flatMap((group) => {
    if (!group.includes('.')) return [Number.parseInt(group, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = group.split('.').map(Number);
    return [(a << 8) | b, (c << 8) | d];
  });
}
