// The records that long tests leave: one shape, whichever of them made it, and no count that no test has printed.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, describe, expect, it } from 'vitest';

import { fillCounts } from '../../benches/lib/counts-page.mjs';
import { beginRecord, commandLine } from '../../benches/lib/record.mjs';
import { PAGES, readRecords } from '../../benches/report.mjs';
import { CountLines, countsIn } from '../../scripts/lib/count-lines.mjs';
import { recordOf } from '../../scripts/lib/test-command.mjs';

const ROOT = new URL('../../', import.meta.url);
const COMMANDS = ['test-faults', 'test-corruption', 'test-fuzz', 'test-memory', 'test-load', 'test-crash', 'test-soak'];

const folder = mkdtempSync(join(tmpdir(), 'sparrow-record-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const run = (args: readonly string[]) =>
  promisify(execFile)(process.execPath, args, { cwd: ROOT }).catch((error: unknown) => error as { stderr: string });

/** What every record of a long test has. */
function expectShape(record: Record<string, any>): void {
  const head = ['suite', 'title', 'command', 'date', 'seconds', 'commit', 'dirty', 'machine'];
  expect(Object.keys(record).slice(0, 12)).toEqual([...head, 'seed', 'counts', 'closing', 'failures']);
  expect(record).toMatchObject({
    suite: expect.stringMatching(/^[a-z]+$/),
    title: expect.any(String),
    command: expect.stringMatching(/^(npm run test:[a-z]+|node test\/load\/[a-z]+\.mjs)/),
    date: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    seconds: expect.any(Number),
    dirty: expect.any(Boolean),
    closing: expect.any(String),
    failures: expect.any(Array),
  });
  // A checkout without git has none.
  expect(record['commit'] ?? '0'.repeat(40)).toMatch(/^[0-9a-f]{40}$/);
  expect(record['machine']).toMatchObject({
    cpu: expect.any(String),
    cores: expect.any(Number),
    memoryBytes: expect.any(Number),
    node: expect.stringMatching(/^v\d+/),
    load: { before: expect.any(Number), after: expect.any(Number) },
  });
  for (const count of Object.values(record['counts'] as object)) expect(count).toEqual(expect.any(Number));
  for (const failure of record['failures'] as unknown[]) expect(failure).toEqual(expect.any(String));
}

describe('a record', () => {
  it('says how, when, from what and where it was made, and what was found', () => {
    const command = commandLine('npm run test:soak', ['--json', new URL('x.json', ROOT).pathname]);
    expect(command).toBe('npm run test:soak -- --json x.json');
    const end = beginRecord({ suite: 'soak', title: 'a test', command, watched: ['test'] });
    const record = recordOf(end, { counts: { a: 1 }, closing: 'one', failures: ['a failure'], rows: [] });
    expectShape(record);
    expect(record['machine'].cpu).toContain(cpus()[0]?.model);
    expect(record).toMatchObject({ seed: null, rows: [] });
  });

  it('is what a command leaves', { timeout: 60_000 }, async () => {
    const file = join(folder, 'expensive.json');
    await run(['test/load/expensive.mjs', '--only', 'a chain', '--json', file]);
    const record = JSON.parse(readFileSync(file, 'utf8')) as Record<string, any>;
    expectShape(record);
    expect(record).toMatchObject({ suite: 'expensive', counts: { requests: 1, asExpected: 1 }, failures: [] });
  });

  it('of a long test has this shape in benches/results, too', () => {
    for (const name of readdirSync(new URL('benches/results/', ROOT))) {
      const record = JSON.parse(readFileSync(new URL(`benches/results/${name}`, ROOT), 'utf8')) as Record<string, any>;
      if ('counts' in record) expectShape(record);
    }
  });
});

describe('a page', () => {
  it.each(['reliability.md', 'limits.md'])('is what the records give: %s', (name) => {
    const text = readFileSync(new URL(`docs/${name}`, ROOT), 'utf8');
    expect(text).toContain('<!-- record: ');
    expect(PAGES.get(name)?.(text, readRecords())).toBe(text);
  });

  it('computes what a cluster needs from the records: design/capacity.md', () => {
    const text = readFileSync(new URL('docs/design/capacity.md', ROOT), 'utf8');
    expect(text.match(/<!-- capacity: \w+ -->\n\|/g)).toHaveLength(6);
    expect(PAGES.get('design/capacity.md')?.(text, readRecords())).toBe(text);
  });

  it('shows what was counted, and keeps what it says without a record', () => {
    const end = beginRecord({ suite: 'corruption', title: 'a test', command: 'npm run test:corruption' });
    const counts = { damaged: 10_000, detected: 9000, harmless: 1000, wrong: 0, panics: 0, hangs: 0 };
    const records = new Map([['corruption', recordOf(end, { seed: 7, counts, closing: '', failures: [] })]]);
    const page = '<!-- record: corruption -->\nold\n<!-- end -->\n<!-- record: crash -->\nkept\n<!-- end -->';
    const filled = fillCounts(page, records);
    expect(filled).toContain('| seed 7 | |\n|---|---|\n| files damaged | 10,000 |');
    expect(filled).toContain('([record](../benches/results/corruption-full.json))');
    expect(filled).not.toContain('old');
    expect(filled).toContain('kept');
    expect(fillCounts(filled, records)).toBe(filled);
  });
});

describe('a command', () => {
  it.each(COMMANDS)('says what options it has, and refuses others in one line: %s', async (name) => {
    const script = `scripts/${name}.mjs`;
    const help = await run([script, '--help']);
    expect('stdout' in help && help.stdout).toMatch(
      /^Usage: npm run test:\w+ -- \[options\]\n[^]*--seed S[^]*--json FILE/,
    );
    const { stderr } = await run([script, '--nonsense']);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain("'--nonsense'");
  });

  it('says what options it has without packages and without a build: bench', async () => {
    const bare = join(folder, 'bare');
    for (const name of ['benches', 'scripts']) {
      cpSync(new URL(name, ROOT), join(bare, name), { recursive: true, filter: (path) => !path.endsWith('results') });
    }
    const help = await run([join(bare, 'scripts', 'run.mjs'), 'benches/run.mjs', '--help']);
    expect('stdout' in help && help.stdout).toMatch(/^Usage: npm run bench -- \[options\]\n[^]*--full [^]*--peers DIR/);
  });
});

describe('counts that tests in Rust print', () => {
  it('are read from their line and no other', () => {
    expect(countsIn('faults: seed=1 cases=45 of=3885', 'faults')).toEqual({ seed: 1, cases: 45, of: 3885 });
    expect(countsIn('faults by call: Write=4', 'faults')).toBeUndefined();
    for (const line of ['faults: 45 cases', 'faults: cases=-1', 'faults: cases=x', 'faults: a=1 a=2', 'faults:']) {
      expect(() => countsIn(line, 'faults'), line).toThrow('is no count');
    }
  });

  it('are missed where a line or a count is missing, and where a line comes twice', () => {
    const read = (...lines: string[]): readonly string[] => {
      const counts = new CountLines(new Map([['faults', ['cases']]]));
      for (const line of lines) counts.read(line);
      return counts.problems();
    };
    expect(read('faults: cases=1 of=2')).toEqual([]);
    expect(read('test every_call_fails_once ... ok')).toEqual(['the tests printed no line [faults: …]']);
    expect(read('faults: of=2')[0]).toContain('no [cases] in');
    expect(read('faults: cases=1', 'faults: cases=1')[0]).toContain('a second line');
    expect(read('faults: 45 cases of 3885')[0]).toContain('is no count');
  });

  it('have the form in which they are printed', () => {
    const sources: readonly (readonly [file: string, line: string])[] = [
      [
        'crates/engine/tests/it/faults/mod.rs',
        '"faults: seed={} cases={} of={all} acknowledged={acknowledged} refused={refused}"',
      ],
      ['crates/engine/tests/it/faults/mod.rs', '"faults during recovery: seed={} cases={} of={all}"'],
      ['crates/engine/tests/it/faults/mod.rs', '"power cuts: seed={} cases={} changes={total}"'],
      [
        'crates/engine/tests/alone/corruption.rs',
        '"corruption: seed={seed} damaged={rounds} detected={} harmless={} wrong={} panics={} hangs={hangs}"',
      ],
      ['crates/fuzzing/src/lib.rs', '"fuzz {}: seed={seed} inputs={tried} crashes={crashes} hangs={hangs}"'],
    ];
    for (const [file, line] of sources) expect(readFileSync(new URL(file, ROOT), 'utf8')).toContain(line);
  });
});
