// Sums test counts over runners of different kinds, for the one closing line of `npm test`, and keeps what failed, to be read
// just above that line: a reader who sees only the end of a long output learns which test it was.

/** How much of one failure is repeated at the end. */
const MOST_LINES = 30;

export class Counts {
  passed = 0;
  failed = 0;
  /** One text for each failure that its runner explained: the test's name, then what it said. */
  failures = [];
  /** Lines of the failing tests of the Rust test binary being read; undefined outside that section. */
  #section;

  add(passed, failed) {
    this.passed += passed;
    this.failed += failed;
  }

  /** Reads a line of `cargo test`: for each test binary what its failing tests printed, if any did, and one summary. */
  readCargoLine(line) {
    if (line === 'failures:' && this.#section === undefined) this.#section = [];
    else if (/^---- .* stdout ----$/.test(line)) this.#section = this.#endFailure([line]);
    else this.#section?.push(line);
    if (!line.startsWith('test result: ')) return;
    this.#section = this.#endFailure(undefined);
    const match = /^test result: \w+\. (\d+) passed; (\d+) failed;/.exec(line);
    if (match) this.add(Number(match[1]), Number(match[2]));
  }

  /** Reads the JSON report of vitest. A file that could not be loaded counts as one failure. */
  readVitest(report) {
    const broken = report.testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && assertionResults.every((test) => test.status !== 'failed'),
    );
    this.add(report.numPassedTests, report.numFailedTests + broken.length);
    for (const { name, message } of broken) this.#keep([name, ...message.split('\n')]);
    for (const { name, assertionResults } of report.testResults) {
      for (const { status, fullName, failureMessages } of assertionResults) {
        if (status === 'failed') this.#keep([`${name}: ${fullName}`, ...failureMessages.join('\n').split('\n')]);
      }
    }
  }

  /** Reads the summary of `benches/run.mjs --json`: a suite whose answers are right is a passed test. */
  readBench(summary) {
    this.add(summary.suites.passed, summary.suites.failed);
  }

  /** Ends the failing test whose lines were being read, and begins the next with `lines`. */
  #endFailure(lines) {
    // The list of names after the last failure ends it too: it says nothing that is not above.
    const end = this.#section?.indexOf('failures:') ?? -1;
    if (this.#section?.[0]?.startsWith('----')) this.#keep(end < 0 ? this.#section : this.#section.slice(0, end));
    return lines;
  }

  #keep(lines) {
    const more = lines.length - MOST_LINES;
    const shown = more > 0 ? [...lines.slice(0, MOST_LINES), `(${more} more lines)`] : lines;
    this.failures.push(shown.join('\n').trimEnd());
  }

  toString() {
    return `${this.passed} passed, ${this.failed} failed`;
  }
}
