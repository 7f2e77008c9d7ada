import { expect, it } from 'vitest';

import { shares } from './shares.mjs';
import { parseYaml } from './yaml-values.mjs';

it('counts what passes of the core and of all, without what is skipped', () => {
  const of = (file: string, state: string): { file: string; state: string } => ({ file, state });
  const results = [
    of('search/10.yml', 'passed'),
    of('search/20.yml', 'expected'),
    of('indices.create/10.yml', 'UNEXPECTED'),
    of('bulk/10.yml', 'skipped'),
    of('cat.nodes/10.yml', 'FAILED'),
  ];
  expect(shares(results)).toEqual([
    { name: 'core', passed: 2, of: 3, percent: '66.7' },
    { name: 'wide', passed: 2, of: 4, percent: '50.0' },
  ]);
  expect(shares([]).map(({ percent }: { percent: string }) => percent)).toEqual(['–', '–']);
});

it('reads collections in brackets whose lines are as far left as their key', () => {
  const text = ['- do:', '    sources: [', '    {', '      "a": { "field": "x" } # why', '    }', '    ]', '- two: 2'];
  expect(parseYaml(text.join('\n'))).toEqual([[{ do: { sources: [{ a: { field: 'x' } }] } }, { two: 2 }]]);
});
