// Ends Rust tests that never end, so that a deadlock is one failed test with a name and not a run that somebody has to stop.
import { spawnSync } from 'node:child_process';

/** How long a test may go on after Rust's harness has said that it takes over a minute. */
export const MINUTES = 5;

export class StuckTests {
  #timers = new Map();
  #end;

  /** `end` is called once for a test binary, with the names of all its tests that take longer than a minute. */
  constructor(end) {
    this.#end = end;
  }

  /** Reads a line of `cargo test`. */
  readCargoLine(line) {
    const slow = /^test (.+) has been running for over 60 seconds$/.exec(line);
    if (slow !== null) {
      const tooLong = () => {
        const names = [...this.#timers.keys()];
        this.stop();
        this.#end(names);
      };
      this.#timers.set(slow[1], setTimeout(tooLong, MINUTES * 60_000));
      return;
    }
    const ended = /^test (.+?)(?: - should panic)? \.\.\. /.exec(line);
    if (ended !== null) {
      clearTimeout(this.#timers.get(ended[1]));
      this.#timers.delete(ended[1]);
    }
    // A test binary that was ended says nothing of its other tests.
    if (/^ +Running |^test result: /.test(line)) this.stop();
  }

  stop() {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}

/** Kills what a process has started, and not the process itself. Returns whether there was anything. */
export function killChildren(pid) {
  return spawnSync('pkill', ['-KILL', '-P', String(pid)]).status === 0;
}
