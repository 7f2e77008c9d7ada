// What `npm test` says at its end: every failure by name, since a reader who sees only the end of its output has nothing else.
import { spawn } from 'node:child_process';
import process from 'node:process';

import { expect, test, vi } from 'vitest';

import { Counts } from '../../scripts/lib/counts.mjs';
import { MINUTES, StuckTests, killChildren } from '../../scripts/lib/stuck-tests.mjs';

test('failing Rust tests are named with what they printed, over several binaries', () => {
  const counts = new Counts();
  const output = `running 3 tests
test a ... ok
test b ... FAILED
test m::c ... FAILED

failures:

---- b stdout ----

thread 'b' panicked at x.rs:1:1:
no b

---- m::c stdout ----
Error: "c"


failures:
    b
    m::c

test result: FAILED. 1 passed; 2 failed; 0 ignored

running 1 test
test d ... ok

test result: ok. 1 passed; 0 failed; 0 ignored`;
  for (const line of output.split('\n')) counts.readCargoLine(line);
  expect(String(counts)).toBe('2 passed, 2 failed');
  expect(counts.failures).toEqual([
    "---- b stdout ----\n\nthread 'b' panicked at x.rs:1:1:\nno b",
    '---- m::c stdout ----\nError: "c"',
  ]);
});

test('failing TypeScript tests and files that cannot be loaded are named, long messages shortened', () => {
  const counts = new Counts();
  const long = Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\n');
  const failed = { status: 'failed', fullName: 'x does y', failureMessages: [long] };
  counts.readVitest({
    numPassedTests: 3,
    numFailedTests: 1,
    testResults: [
      { name: 'a.test.ts', status: 'failed', message: 'cannot be loaded', assertionResults: [] },
      { name: 'b.test.ts', status: 'failed', message: '', assertionResults: [failed] },
    ],
  });
  expect(String(counts)).toBe('3 passed, 2 failed');
  expect(counts.failures[0]).toBe('a.test.ts\ncannot be loaded');
  expect(counts.failures[1]).toMatch(/^b\.test\.ts: x does y\nline 0\n[^]*\(71 more lines\)$/);
});

test('Rust tests that never end are told by name, those that are only slow are not', () => {
  vi.useFakeTimers();
  try {
    const ended: string[][] = [];
    const stuck = new StuckTests((names: string[]) => void ended.push(names));
    const slow = (name: string) => {
      stuck.readCargoLine(`test ${name} has been running for over 60 seconds`);
    };
    slow('m::of_the_binary_before');
    stuck.readCargoLine('     Running unittests src/lib.rs (target/release/deps/next)');
    ['m::slow', 'm::panics', 'm::hangs', 'm::hangs_too'].forEach(slow);
    stuck.readCargoLine('test m::slow ... ok');
    stuck.readCargoLine('test m::panics - should panic ... ok');
    vi.advanceTimersByTime(MINUTES * 60_000 * 2);
    expect(ended, 'once').toEqual([['m::hangs', 'm::hangs_too']]);
  } finally {
    vi.useRealTimers();
  }
});

test.skipIf(process.platform === 'win32')('what a process has started is killed, and it goes on', async () => {
  const shell = spawn('sh', ['-c', 'sleep 60; echo "it goes on"'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  shell.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const closed = new Promise((resolve) => shell.once('close', resolve));
  await expect.poll(() => killChildren(shell.pid)).toBe(true);
  await closed;
  expect(said).toBe('it goes on\n');
  expect(killChildren(shell.pid), 'there is nothing left').toBe(false);
});
