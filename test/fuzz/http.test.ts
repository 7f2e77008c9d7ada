// Bad requests over HTTP: each is answered, and none with a failure of the server's own. `npm run test:fuzz` sends more.
import { readFileSync, readdirSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { ENDPOINTS } from '@sparrow-search/server';

import { byTier } from '../tiers.mjs';
import { corpus, requestOf } from './requests.mjs';
import { Target, fuzz, isMistake } from './run.mjs';

const FOUND = new URL('found/', import.meta.url);
const INPUTS = byTier(300, 1200);

describe('bad requests', () => {
  it('are the same for the same seed, and reach every route', () => {
    const good = corpus();
    const made = (seed: number): string[] =>
      Array.from({ length: 50 }, (_, number) => JSON.stringify(requestOf(good, seed, number)));
    expect(made(1)).toEqual(made(1));
    expect(made(1)).not.toEqual(made(2));
    expect(good.rows).toHaveLength(ENDPOINTS.length);
    expect(good.all.length).toBeGreaterThan(400);
  });

  it('that went wrong once do not again', async () => {
    const target = new Target();
    await target.start();
    try {
      for (const name of readdirSync(FOUND).filter((one) => one.endsWith('.json'))) {
        const kept = JSON.parse(readFileSync(new URL(name, FOUND), 'utf8')) as Record<string, any>;
        const request = {
          ...kept,
          ...(kept['body'] === undefined ? {} : { body: Buffer.from(kept['body'], 'base64') }),
        };
        const outcome = await target.send(request as any);
        expect([name, isMistake(outcome, request as any), target.isDead]).toEqual([name, false, false]);
      }
      expect(await target.isWell()).toBe(true);
    } finally {
      await target.remove();
    }
  });

  it('are all answered, and none with 500', async () => {
    const mistakes: unknown[] = [];
    const counts = await fuzz({
      seed: 1,
      inputs: INPUTS,
      report: ({ request, ...mistake }: Record<string, any>) =>
        mistakes.push({ ...mistake, method: request?.method, path: request?.path, body: request?.body?.toString() }),
    });
    expect(mistakes).toEqual([]);
    expect(counts['tried']).toBe(INPUTS);
    expect(counts).toMatchObject({ fiveHundreds: 0, hangs: 0, cuts: 0, deaths: 0 });
    // Most are refused, but not all: those that do nothing would find nothing.
    expect(counts['statuses']['2xx']).toBeGreaterThan(INPUTS / 20);
    expect(counts['statuses']['4xx']).toBeGreaterThan(INPUTS / 3);
  }, 120_000);
});
