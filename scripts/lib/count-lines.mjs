// The lines with counts that tests in Rust print for the commands that run them, such as `faults: seed=1 cases=45 of=3885`.

/**
 * The counts in a line that begins with `name`; undefined for any other line.
 *
 * @returns {Record<string, number> | undefined}
 * @throws where the line has anything else than counts
 */
export function countsIn(line, name) {
  if (!line.startsWith(`${name}:`)) return undefined;
  const counts = {};
  for (const part of line
    .slice(name.length + 1)
    .trim()
    .split(/\s+/)) {
    const [, key, value] = /^(\w+)=(\d+)$/.exec(part) ?? [];
    if (key === undefined || key in counts) throw new Error(`[${part}] is no count: ${line}`);
    counts[key] = Number(value);
  }
  return counts;
}

/** Takes the lines with counts of some names out of the output of a test. */
export class CountLines {
  /** Counts by the name of their line. */
  found = new Map();
  /** What is wrong with lines, as texts. */
  failures = [];
  #names;

  /** @param {Map<string, string[]>} names the names of lines, and the counts that each has to have; none: any counts */
  constructor(names) {
    this.#names = names;
  }

  read(line) {
    for (const [name, keys] of this.#names) {
      try {
        const counts = countsIn(line, name);
        if (counts === undefined) continue;
        const missing = keys.filter((key) => !(key in counts));
        if (missing.length > 0) throw new Error(`no [${missing.join(', ')}] in: ${line}`);
        if (this.found.has(name)) throw new Error(`a second line: ${line}`);
        this.found.set(name, counts);
      } catch (error) {
        this.failures.push(error.message);
      }
    }
  }

  /** What is wrong with the whole output: lines that are missing count. */
  problems() {
    const missing = [...this.#names.keys()].filter((name) => !this.found.has(name));
    return [...this.failures, ...missing.map((name) => `the tests printed no line [${name}: …]`)];
  }

  /** A count; zero where the line is missing, which is a problem of its own. */
  of(name, key) {
    return this.found.get(name)?.[key] ?? 0;
  }
}
