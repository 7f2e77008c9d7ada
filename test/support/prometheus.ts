/** One line of a page: a name, its labels, its value. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A family of figures. */
export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*';
const LINE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`);
const LABEL = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/;
const TYPES = ['counter', 'gauge', 'histogram', 'summary'];
const UNITS = /_(?:seconds|bytes|total|info)$/;

/**
 * Reads a page in the text format of Prometheus, version 0.0.4, and throws for everything that a strict reader would not take:
 * figures without a type or a help, families that are scattered or twice there, the same labels twice, counters that are negative
 * or not called `_total`, histograms that do not add up.
 */
export function readPage(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, Family>();
  let current: { name: string; help: string | undefined; type: string | undefined } | undefined;
  const seen = new Set<string>();
  for (const line of text.slice(0, -1).split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      if (families.has(name)) throw new Error(`the family ${name} is there twice`);
      current = { name, help: rest, type: undefined };
    } else if (kind === 'TYPE') {
      if (current?.name !== name || current.help === undefined) throw new Error(`no help before the type of ${name}`);
      if (!TYPES.includes(rest)) throw new Error(`${name} has the type ${rest}`);
      current.type = rest;
      families.set(name, { type: rest, help: current.help, samples: [] });
    } else {
      const sample = readLine(line);
      const family = current === undefined ? undefined : families.get(current.name);
      if (family === undefined || current === undefined) throw new Error(`a figure without a family: ${line}`);
      checkName(sample, current.name, family.type);
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`;
      if (seen.has(key)) throw new Error(`twice: ${line}`);
      seen.add(key);
      family.samples.push(sample);
    }
  }
  for (const [name, family] of families) checkFamily(name, family);
  return families;
}

/** The value of the one figure with these labels, or of all that have them together. */
export function valueOf(page: ReadonlyMap<string, Family>, name: string, labels: Record<string, string> = {}): number {
  const family = page.get(name.replace(/_(?:bucket|sum|count)$/, '')) ?? page.get(name);
  const samples = (family?.samples ?? []).filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  );
  return samples.reduce((sum, { value }) => sum + value, 0);
}

function readLine(line: string): Sample {
  const [, name = '', inside, number = ''] = LINE.exec(line) ?? [];
  if (name === '') throw new Error(`not a figure: ${line}`);
  const labels: Record<string, string> = {};
  for (let rest = inside ?? ''; rest !== '';) {
    const [whole = '', key = '', value = ''] = LABEL.exec(rest) ?? [];
    if (whole === '') throw new Error(`not labels: ${line}`);
    if (key in labels) throw new Error(`the label ${key} is there twice: ${line}`);
    labels[key] = value;
    rest = rest.slice(whole.length);
  }
  const value = number === '+Inf' ? Infinity : number === '-Inf' ? -Infinity : Number(number);
  if (Number.isNaN(value) && number !== 'NaN') throw new Error(`not a number: ${line}`);
  return { name, labels, value };
}

function checkName({ name, labels }: Sample, family: string, type: string): void {
  const endings =
    type === 'histogram' ? ['_bucket', '_sum', '_count'] : type === 'summary' ? ['', '_sum', '_count'] : [''];
  if (!endings.some((ending) => name === family + ending)) throw new Error(`${name} stands in the family ${family}`);
  if ('le' in labels !== (type === 'histogram' && name.endsWith('_bucket'))) throw new Error(`${name}: le`);
}

function checkFamily(name: string, { type, help, samples }: Family): void {
  if (help.trim() === '') throw new Error(`${name} has no help`);
  if (type === 'counter') {
    if (!name.endsWith('_total')) throw new Error(`the counter ${name} does not end with _total`);
    if (samples.some(({ value }) => !(value >= 0))) throw new Error(`the counter ${name} is negative`);
  } else if (name.endsWith('_total')) {
    throw new Error(`${name} is a ${type}`);
  }
  if ((type === 'histogram' || type === 'summary') && !UNITS.test(name)) throw new Error(`${name} has no unit`);
  if (type !== 'histogram') return;
  const series = new Map<string, Sample[]>();
  for (const sample of samples) {
    const own = Object.entries(sample.labels).filter(([key]) => key !== 'le');
    const key = JSON.stringify(own.sort());
    series.set(key, [...(series.get(key) ?? []), sample]);
  }
  for (const [key, lines] of series) {
    const buckets = lines.filter((line) => line.name === `${name}_bucket`);
    const bounds = buckets.map(({ labels }) => (labels['le'] === '+Inf' ? Infinity : Number(labels['le'])));
    const one = (ending: string): number => {
      const found = lines.filter((line) => line.name === name + ending);
      if (found.length !== 1) throw new Error(`${name}${ending} of ${key} is there ${String(found.length)} times`);
      return found[0]?.value ?? NaN;
    };
    if (bounds.some((bound, at) => at > 0 && !(bound > (bounds[at - 1] ?? NaN))))
      throw new Error(`${name} ${key}: order`);
    if (bounds.at(-1) !== Infinity) throw new Error(`${name} ${key} has no +Inf`);
    if (buckets.some(({ value }, at) => at > 0 && value < (buckets[at - 1]?.value ?? 0))) {
      throw new Error(`${name} ${key} is not cumulative`);
    }
    if (buckets.at(-1)?.value !== one('_count')) throw new Error(`${name} ${key}: +Inf is not the count`);
    if (one('_count') === 0 && one('_sum') !== 0) throw new Error(`${name} ${key}: a sum of nothing`);
  }
}
