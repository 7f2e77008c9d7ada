import { byTier } from '../../tiers.mjs';

/** Random choices that are the same for the same seed, so that a failing request can be had again. */
export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** At least 0, below 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(from: readonly T[]): T {
    return from[this.int(0, from.length - 1)] as T;
  }

  /** Several picks, in any order, with repetitions. */
  several<T>(low: number, high: number, make: () => T): T[] {
    return Array.from({ length: this.int(low, high) }, make);
  }

  /** Different ones of a list, in its order. */
  some<T>(from: readonly T[], share: number): T[] {
    return from.filter(() => this.chance(share));
  }

  /** The member if chance wants it, as part of an object literal. */
  maybe<T extends object>(share: number, make: () => T): T | object {
    return this.chance(share) ? make() : {};
  }
}

/** Where the choices of the property tests begin; other ones to look for more: `PROPERTY_SEED=7 npx vitest run …`. */
export const SEED = Number(process.env['PROPERTY_SEED'] ?? 1);

/** How often a property is tried: `usual`, a quarter of that in the first tier, or what `PROPERTY_ROUNDS` says. */
export const rounds = (usual: number): number =>
  Number(process.env['PROPERTY_ROUNDS'] ?? byTier(Math.ceil(usual / 4), usual));
