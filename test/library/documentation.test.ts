// The examples of README and docs/library.md: they are checked by the compiler, and do what they say.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import ts from 'typescript';
import { afterAll, beforeAll, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PAGES = ['docs/library.md', 'packages/engine/README.md', 'README.md'];
const blocks = PAGES.flatMap((page) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text),
);

/** What the examples print, in the order of the page. */
const PRINTED: readonly (string | RegExp)[] = [
  /^\d+\.\d+ Whales\n$/,
  '',
  /^line 2: .* failed to parse field \[text\].*\n3 documents\n2 written, 1 rejected\na Blue whales sing\.\n$/,
  /^\d\.\d+ \d\.\d+\n384\n$/,
  '404 index_not_found_exception no such index [nowhere]\n',
  "200 { status: 'green' }\n",
  '200 {"status":"green"}\n',
  'Emma\n',
  /^\[ '1' \] \d+\n$/,
  'Sore muscles recover with rest and water.\n',
];

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'sparrow-examples-'));
  symlinkSync(join(ROOT, 'node_modules'), join(home, 'node_modules'));
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  const lines = [
    { id: 'a', text: 'Blue whales sing.' },
    { id: 'b', text: { not: 'a text' } },
    { id: 'c', text: 'Bread rises.' },
  ];
  writeFileSync(join(home, 'lines.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  blocks.forEach((text, n) => {
    writeFileSync(join(home, `example-${String(n)}.ts`), text);
  });
});
afterAll(() => {
  rmSync(home, { recursive: true, force: true });
});

it('the examples are right by their types', () => {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    typeRoots: [join(home, 'node_modules', '@types')],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    outDir: join(home, 'out'),
    rootDir: home,
  };
  mkdirSync(join(home, 'out'));
  const program = ts.createProgram(
    blocks.map((_, n) => join(home, `example-${String(n)}.ts`)),
    options,
  );
  const problems = ts.getPreEmitDiagnostics(program);
  expect(
    ts.formatDiagnostics(problems, {
      getCanonicalFileName: (name) => name,
      getCurrentDirectory: () => home,
      getNewLine: () => '\n',
    }),
  ).toBe('');
  program.emit();
});

it.each(blocks.map((_, n) => n))('example %i prints what it should', async (n) => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [join(home, 'out', `example-${String(n)}.js`)],
    {
      cwd: home,
    },
  );
  expect(stderr).toBe('');
  const expected = PRINTED[n];
  if (expected instanceof RegExp) expect(stdout).toMatch(expected);
  else expect(stdout).toBe(expected);
});
