import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, expect, it } from 'vitest';

import { readJudgements } from './collection.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sparrow-judgements-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

const judged = (...lines: string[]) => {
  writeFileSync(join(directory, 'qrels.test.tsv'), ['query-id\tcorpus-id\tscore', ...lines, ''].join('\r\n'));
  return readJudgements(directory).judgements;
};

it('reads grades above 0', () => {
  expect(judged('q\ta\t2', 'q\tb\t0', '__proto__\tc\t0.5')).toEqual(
    new Map([
      ['q', new Map([['a', 2]])],
      ['__proto__', new Map([['c', 0.5]])],
    ]),
  );
});

it('takes the first line for a heading only if it has no grade', () => {
  const readFrom = (first: string) => {
    writeFileSync(join(directory, 'qrels.test.tsv'), `${first}\nq\tb\t1\n`);
    return readJudgements(directory).judgements.get('q');
  };
  expect(readFrom('q\ta\t2')).toEqual(
    new Map([
      ['a', 2],
      ['b', 1],
    ]),
  );
  expect(readFrom('query-id\tcorpus-id\tscore')).toEqual(new Map([['b', 1]]));
});

it.each(['q a 1', 'q\ta', 'q\ta\tgood', 'q\ta\t1e999', 'q\ta\t1001'])('refuses %j, and names the line', (line) => {
  expect(() => judged('q\tb\t1', line)).toThrow(/: line 3 of qrels\.test\.tsv /);
});
