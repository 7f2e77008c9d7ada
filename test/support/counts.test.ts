// What `npm test` says at its end: every failure by name, since whoever sees only the end of its output has nothing else.
import { expect, test, vi } from 'vitest';

import { Counts } from '../../scripts/lib/counts.mjs';
import { MINUTES, StuckTests } from '../../scripts/lib/stuck-tests.mjs';

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

test('a Rust test that never ends is told by name, one that is only slow is not', () => {
  vi.useFakeTimers();
  try {
    const ended: string[] = [];
    const stuck = new StuckTests((name: string) => void ended.push(name));
    stuck.readCargoLine('test m::of_the_binary_before has been running for over 60 seconds');
    stuck.readCargoLine('     Running unittests src/lib.rs (target/release/deps/next)');
    stuck.readCargoLine('test m::slow has been running for over 60 seconds');
    stuck.readCargoLine('test m::hangs has been running for over 60 seconds');
    stuck.readCargoLine('test m::slow ... ok');
    vi.advanceTimersByTime(MINUTES * 60_000);
    expect(ended).toEqual(['m::hangs']);
  } finally {
    vi.useRealTimers();
  }
});
