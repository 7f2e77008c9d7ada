// What the command line says about itself, and to somebody who does not write it as it is.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { afterAll, describe, expect, it } from 'vitest';

import { sparrow, told } from './support.js';

const folder = await mkdtemp(join(tmpdir(), 'sparrow-words-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('a command line that makes no sense', () => {
  it.each([
    [['serach', 'x'], "unknown command 'serach', did you mean search?"],
    [['serach', '--help'], "unknown command 'serach', did you mean search?"],
    [['nothing-like-it', 'x'], "unknown command 'nothing-like-it' (see --help)"],
    [['search', 'x', '--indx', 'articles'], "unknown option '--indx', did you mean --index?"],
    [['search', '--', '--indx'], "required option '--index <name>' not specified"],
    [['status', '--ulr', 'x'], "unknown option '--ulr', did you mean --url?"],
    [['key', 'lst'], "unknown command 'lst' of 'key', did you mean list?"],
    [['models', 'begin'], "unknown command 'begin' of 'models', it has list, start, stop, test"],
    [['key'], "'key' needs one of its commands: new, list, revoke, reset-owner"],
    [['search', 'whales'], "required option '--index <name>' not specified"],
    [['search', '--index', 'a'], 'a question is needed'],
    [['search', 'b', '--index', 'a', '--body', '{}'], 'give a question, or a request with --body, and not both'],
    [['search', '--index', 'a', 'b', '--size', 'many'], 'it must be a whole number, at least 0'],
    [['search', '--index', 'a', 'b', '--by', 'luck'], 'Allowed choices are hybrid, meaning, words, sparse, dense'],
    [['import', 'x.dat'], 'x.dat: say with --format whether it is jsonl, json, csv, tsv'],
    [
      ['import', '--semantic', 'text', 'x.csv'],
      "missing required argument 'file': --semantic takes all the words that follow it",
    ],
    [['import', 'x.xlsx'], 'x.xlsx is a spreadsheet, which Sparrow cannot read: save it as CSV'],
    [['import', 'a.csv', '--vectors', 'dense', '--no-semantic'], '--no-semantic makes no vectors: leave out --vectors'],
    [['import', 'a.csv', '--semantic', 'a', '--vectors', 'both'], 'Allowed choices are hybrid, sparse, dense'],
    [['import', 'a.csv', 'b.csv', '--follow'], '--follow takes one file'],
    [['key', 'new', 'shop'], 'say what the key may do'],
    [['completion', 'tcsh'], 'Allowed choices are bash, zsh, fish'],
    [['demo', 'rich person', '--remove'], '--remove takes no question'],
    [['check'], 'name a data directory or, with --repository, a snapshot repository'],
    [['check', 'data', '--repository', 'r'], 'name a data directory or, with --repository, a snapshot repository'],
    [['repair', 'a'], "required option '--into <dir>' not specified"],
    [['--prot', '1'], 'unknown option --prot, did you mean --port?'],
    [['status', '--port', '9478'], "unknown option '--port', say --url http://127.0.0.1:PORT"],
    [['serve', '--port', 'x'], '--port expects a port from 0 to 65535, not [x]'],
  ])('%j is one sentence, and ends with 2', async (args, sentence) => {
    const { code, stdout, stderr } = await sparrow(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^sparrow: .*\n$/);
    expect(stderr).toContain(sentence);
  });
});

/** All commands but `serve`, whose help is that of the settings. */
const COMMANDS = 'import search eval status models tasks key snapshot check repair completion'.split(' ');

/** The commands of each group. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  tasks: ['list', 'show', 'cancel'],
  models: ['list', 'start', 'stop', 'test'],
  key: ['new', 'list', 'revoke', 'reset-owner'],
  snapshot: ['create', 'list', 'restore', 'delete'],
};

describe('--help', () => {
  it('says which commands there are, and the settings of the server', async () => {
    const { code, stdout, stderr } = await sparrow(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const word of ['serve', ...COMMANDS]) {
      expect(stdout).toMatch(new RegExp(`^  ${word} `, 'm'));
    }
    expect(stdout).toContain('--port');
    expect((await sparrow(['serve', '--help'])).stdout).toContain('--slow-request-seconds');
    const version = await sparrow(['--version']);
    expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(await sparrow(['version'])).toEqual(version);
  });

  it.each([[], ['key'], ['key', 'new'], ['serve']])('is the same behind the word help: %j', async (...words) => {
    const [behind, option] = [await sparrow(['help', ...words]), await sparrow([...words, '--help'])];
    expect(behind).toEqual(option);
    expect([behind.code, behind.stderr]).toEqual([0, '']);
    const unknown = await sparrow(['help', 'serach']);
    expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean search?')]);
  });

  it.each([...COMMANDS, 'key new'])('is there for %s', async (words) => {
    const { code, stdout, stderr } = await sparrow([...words.split(' '), '--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(new RegExp(`^Usage: sparrow ${words}`));
  });
});

describe('--json', () => {
  it.each([
    ...Object.entries(GROUPS).flatMap(([group, words]) => words.map((word) => `${group} ${word}`)),
    ...['import', 'search', 'eval', 'status', 'demo', 'check', 'repair', 'migrate'],
  ])('of %s says what comes out', async (words) => {
    expect(await told(words)).toMatch(/^print one line of JSON.*: (?:\{|the |a list of |for each )/);
  });
});

it('npm run eval is the same command', async () => {
  const script = fileURLToPath(new URL('../../scripts/eval.mjs', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--help']);
  expect(stdout).toContain('Usage: sparrow eval');
});

describe('completion', () => {
  it('of bash completes commands, their words and options', async () => {
    const script = join(folder, 'sparrow.bash');
    await writeFile(script, (await sparrow(['completion', 'bash'])).stdout);
    const complete = async (...words: string[]) => {
      const quoted = ['sparrow', ...words].map((word) => `'${word}'`).join(' ');
      const line = `source ${script}; COMP_WORDS=(${quoted}); COMP_CWORD=${String(words.length)}; _sparrow; echo "\${COMPREPLY[@]}"`;
      return (await promisify(execFile)('bash', ['--norc', '-c', line])).stdout.trim().split(' ');
    };
    expect(await complete('se')).toEqual(['serve', 'search']);
    expect(await complete('key', 're')).toEqual(['revoke', 'reset-owner']);
    expect(await complete('search', '--si')).toEqual(['--size']);
    expect(await complete('serve', '--slow')).toEqual(['--slow-request-seconds']);
    expect(await complete('--po')).toEqual(['--port']);
    expect(await complete('search', '--by', '')).toEqual(['hybrid', 'meaning', 'words', 'sparse', 'dense']);
    expect(await complete('import', 'a.txt', '--format', 'js')).toEqual(['jsonl', 'json']);
  });

  it.each(['zsh', 'fish'])('of %s names every command', async (shell) => {
    const { code, stdout } = await sparrow(['completion', shell]);
    expect(code).toBe(0);
    for (const word of ['import', 'reset-owner', 'follow', 'slow-request-seconds']) expect(stdout).toContain(word);
  });
});
