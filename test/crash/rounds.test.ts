// The short form of `npm run test:crash`; docs/reliability.md says what is compared.
import { readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { byTier, isFirstTier } from '../tiers.mjs';
import { closingLine, runRounds } from './rounds.mjs';

const SEED = Number(process.env['CRASH_SEED'] ?? 18);
const ROUNDS = byTier(2, 6);
/** A slow machine does fewer rounds. */
const BOUND_MS = 40_000;

describe('a server killed under load', () => {
  it('has what it acknowledged, and nothing else', async () => {
    const lines: string[] = [];
    const report = await runRounds({
      rounds: ROUNDS,
      seed: SEED,
      maxProblems: 1,
      milliseconds: BOUND_MS,
      say: (line: string) => void lines.push(line),
    });
    expect(report.failures, `${lines.join('\n')}\n${closingLine(report)}`).toEqual([]);
    expect(report.kills + report.terminations).toBeGreaterThan(0);
    expect(report.operations).toBeGreaterThan(byTier(5, 20));
    expect(report.documents).toBeGreaterThan(byTier(100, 400));
    expect(report.searches).toBeGreaterThan(0);
  }, 120_000);

  it.skipIf(isFirstTier)(
    'that forgets the end of its logs is found out',
    async () => {
      const report = await runRounds({
        rounds: 8,
        seed: SEED,
        maxProblems: 1,
        damage: (data: string) => {
          for (const name of readdirSync(data, { recursive: true, encoding: 'utf8' })) {
            const path = join(data, name);
            if (path.endsWith('.log')) truncateSync(path, Math.floor(statSync(path).size / 2));
          }
        },
      });
      expect(report.failures).toHaveLength(1);
      const [failure] = report.failures as { data: string }[];
      for (const folder of [failure?.data ?? '', `${failure?.data}-before-restart`]) {
        if (failure !== undefined) rmSync(folder, { recursive: true, force: true });
      }
    },
    120_000,
  );
});
