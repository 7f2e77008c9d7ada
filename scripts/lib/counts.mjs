// Sums test counts over runners of different kinds, for the one closing line of `npm test`.
export class Counts {
  passed = 0;
  failed = 0;

  add(passed, failed) {
    this.passed += passed;
    this.failed += failed;
  }

  /** Reads a line of `cargo test`: one summary for each test binary. */
  readCargoLine(line) {
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
  }

  /** Reads the summary of `benches/run.mjs --json`: a suite whose answers are right is a passed test. */
  readBench(summary) {
    this.add(summary.suites.passed, summary.suites.failed);
  }

  toString() {
    return `${this.passed} passed, ${this.failed} failed`;
  }
}
