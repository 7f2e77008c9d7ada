// docs/errors.md has every type of error that the sources can answer with, and no other.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { openapi } from '@sparrow-search/server';
import { expect, it } from 'vitest';

import { ROOT, read } from './pages.js';

interface Operation {
  readonly operationId: string;
  readonly responses?: Readonly<Record<string, unknown>>;
  readonly security?: readonly unknown[];
}

/** Where answers are written. */
const CRATES = readdirSync(join(ROOT, 'crates')).map((name) => `crates/${name}/src`);
const PACKAGES = ['packages/http/src', 'packages/endpoints/src', 'packages/cluster/src'];

function sources(): string[] {
  return [...CRATES, ...PACKAGES].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:rs|ts)$/.test(name) && !/test/.test(name))
      // Tests at the end of a file in Rust speak of what others answer.
      .map((name) => readFileSync(join(ROOT, folder, name), 'utf8').replace(/#\[cfg\(test\)\]\nmod[\s\S]*$/, '')),
  );
}

const TYPE = String.raw`["']([a-z_]+_exception|exception|too_many_nested_clauses)["']`;

const page = read('docs/errors.md');
/** Type, status, when, and what to do. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
const documented = new Map(
  rows.map(([type = '', status = '', ...rest]) => [type.replaceAll('`', ''), { status, rest }]),
);

it('every type that the sources name is described, and no other', () => {
  const named = new Set(sources().flatMap((text) => [...text.matchAll(new RegExp(TYPE, 'g'))].map(([, type]) => type)));
  expect(named.size).toBeGreaterThan(60);
  expect([...documented.keys()].toSorted()).toEqual([...named].toSorted());
});

it('the statuses that the sources give are those of the page', () => {
  const given = sources().flatMap((text) => [
    ...[...text.matchAll(new RegExp(String.raw`\b([45]\d\d),\s*(?:Exception::new\(\s*)?${TYPE}`, 'g'))].map(
      ([, status = '', type = '']) => [type, status] as const,
    ),
    ...[...text.matchAll(/type: '([a-z_]+)', status: (\d+)/g)].map(
      ([, type = '', status = '']) => [type, status] as const,
    ),
  ]);
  expect(given.length).toBeGreaterThan(40);
  const missing = given.filter(([type, status]) => documented.get(type)?.status.includes(status) !== true);
  expect(missing).toEqual([]);
});

it('every row says when, and what to do', () => {
  expect([...documented].filter(([, { rest }]) => rest.length !== 2 || rest.some((cell) => cell === ''))).toEqual([]);
});

it('every status of the page is one that the OpenAPI document has for each operation', () => {
  const table = /## By status\n([\s\S]*?)\n## /.exec(page)?.[1] ?? '';
  // A method that a path does not have is no operation.
  const statuses = [...table.matchAll(/^\| ([\d, ]+) \|/gm)]
    .flatMap(([, cell = '']) => cell.split(', '))
    .filter((status) => status !== '405');
  expect(statuses.length).toBeGreaterThan(12);
  const { paths } = JSON.parse(openapi()) as { paths: Record<string, Record<string, Operation>> };
  const missing = Object.values(paths)
    .flatMap((item) => Object.values(item))
    // What is open to everybody can do without.
    .filter(({ responses, security }) => responses !== undefined && security === undefined)
    .flatMap(({ operationId, responses = {} }) =>
      statuses.filter((status) => !(status in responses)).map((status) => `${operationId}: ${status}`),
    );
  expect(missing).toEqual([]);
});
