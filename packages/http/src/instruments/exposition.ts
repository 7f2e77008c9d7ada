/** One figure of a family: its labels, and its value. */
export interface Sample {
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** How often something was seen, by upper bounds. */
export interface Distribution {
  readonly labels?: Readonly<Record<string, string>>;
  /** How many were seen in each bucket alone, the last one being without a bound. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** Writes figures in the text format that Prometheus reads, version 0.0.4. */
export class Exposition {
  static readonly contentType = 'text/plain; version=0.0.4; charset=utf-8';

  readonly #lines: string[] = [];
  readonly #names = new Set<string>();

  /** A figure that only grows. Its name ends with `_total`. */
  counter(name: string, help: string, samples: number | readonly Sample[]): void {
    this.#family(name, 'counter', help);
    this.#samples(name, samples);
  }

  /** A figure that goes up and down. What is not known (`undefined`) is left out. */
  gauge(name: string, help: string, samples: number | undefined | readonly Sample[]): void {
    if (samples === undefined) return;
    this.#family(name, 'gauge', help);
    this.#samples(name, samples);
  }

  /** Distributions over the same upper bounds, ascending. */
  histogram(name: string, help: string, bounds: readonly number[], distributions: readonly Distribution[]): void {
    this.#family(name, 'histogram', help);
    for (const { labels = {}, counts, sum } of distributions) {
      let count = 0;
      for (const [place, own] of counts.entries()) {
        count += own;
        const bound = bounds[place];
        this.#line(`${name}_bucket`, { ...labels, le: bound === undefined ? '+Inf' : number(bound) }, count);
      }
      this.#line(`${name}_sum`, labels, sum);
      this.#line(`${name}_count`, labels, count);
    }
  }

  /** Quantiles that were worked out here, over everything seen so far. */
  summary(name: string, help: string, quantiles: readonly [number, number][], sum: number, count: number): void {
    this.#family(name, 'summary', help);
    for (const [quantile, value] of quantiles) this.#line(name, { quantile: number(quantile) }, value);
    this.#line(`${name}_sum`, {}, sum);
    this.#line(`${name}_count`, {}, count);
  }

  toString(): string {
    return `${this.#lines.join('\n')}\n`;
  }

  #family(name: string, type: string, help: string): void {
    if (this.#names.has(name)) throw new Error(`the family ${name} is there twice`);
    this.#names.add(name);
    this.#lines.push(`# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`);
    this.#lines.push(`# TYPE ${name} ${type}`);
  }

  #samples(name: string, samples: number | readonly Sample[]): void {
    if (typeof samples === 'number') this.#line(name, {}, samples);
    else for (const { labels = {}, value } of samples) this.#line(name, labels, value);
  }

  #line(name: string, labels: Readonly<Record<string, string>>, value: number): void {
    const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
    this.#lines.push(`${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${number(value)}`);
  }
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

function number(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  return String(value);
}
