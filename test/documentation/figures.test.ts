// The figures of README.md over HTTP are those of the record.
import { expect, it } from 'vitest';

import { read, rowsOf } from './pages.js';

interface Record_ {
  readonly rows: readonly { readonly what: string; readonly sparrow: number; readonly peer: number }[];
}

const rows = rowsOf(/^## Figures$[^]*?(^\|[^]*?)\n\n/m.exec(read('README.md'))?.[1] ?? '');
const record = JSON.parse(read('benches/results/http-full.json')) as Record_;
const whole = (value: number): string => Math.round(value).toLocaleString('en');

it.each([
  ['a question over HTTP', 'one client, p50', (value: number) => `${value.toFixed(2)} ms`],
  ['the same, 32 clients', '32 clients, requests per second', (value: number) => `${whole(value)} requests/s`],
])('%s is as measured', (name, what, shown) => {
  const [, sparrow, instead] = rows.find(([first]) => first?.startsWith(name)) ?? [];
  const measured = record.rows.find((row) => row.what === what);
  expect(sparrow).toContain(shown(measured?.sparrow ?? NaN));
  expect(instead).toContain(shown(measured?.peer ?? NaN));
});
