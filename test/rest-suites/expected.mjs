// The tests that are known to fail, with the reason. An expected failure that passes is a failure of this list; what the suite
// tests of an interface that version 8 no longer has is not run.
import { readFileSync } from 'node:fs';

import { parse } from 'yaml';

const LIST = new URL('expected-failures.yml', import.meta.url);

/**
 * A line of the list is `folder/file.yml: name of the test`, or without a name for all tests of a file; `*` is any text.
 *
 * @returns {{ failing(test: { file: string, name: string }): string | undefined, removed(test: { file: string, name: string }): string | undefined }}
 *   the reason that a test may fail for; the reason that it is not run for
 */
export function loadExpected() {
  const { failing, removed } = parse(readFileSync(LIST, 'utf8'));
  return { failing: lookup(failing), removed: lookup(removed) };
}

function lookup(reasons) {
  const entries = Object.entries(reasons ?? {}).flatMap(([reason, lines]) =>
    lines.map((line) => ({ reason, pattern: patternOf(line), whole: !/\.yml: /.test(line) })),
  );
  return ({ file, name }) =>
    entries.find(({ pattern, whole }) => pattern.test(whole ? file : `${file}: ${name}`))?.reason;
}

function patternOf(line) {
  const escaped = line.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${escaped.join('.*')}$`, 's');
}
