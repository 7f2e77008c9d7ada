import type { Route } from '@sparrow-search/endpoints';

import type { Distribution, Exposition, Sample } from './exposition.js';

/** Upper bounds of the buckets for the time of a request, in seconds. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS']);

/** Why a request was refused before any work was done for it, by the type of its error. */
const REASONS: Readonly<Record<string, string>> = {
  es_rejected_execution_exception: 'queue_full',
  circuit_breaking_exception: 'circuit_breaker',
  content_too_long_exception: 'body_too_large',
  too_long_http_header_exception: 'header_too_large',
  cluster_block_exception: 'blocked',
};

/** What came of the requests of one method to one route. */
interface Figures {
  /** Answers by the first digit of their status. */
  readonly classes: number[];
  readonly buckets: number[];
  seconds: number;
}

/**
 * Counts requests by route, method and class of status: no label has a value that a client chooses. What is unknown counts as
 * the route `unmatched` and the method `other`.
 */
export class RequestFigures {
  readonly #routes = new Map<Route | undefined, Map<string, Figures>>();
  readonly #rejected = new Map<string, number>();
  /** Requests that are being answered. */
  active = 0;

  /** Notes an answer, and how many seconds it took to make. */
  answered(route: Route | undefined, method: string, status: number, seconds: number): void {
    let methods = this.#routes.get(route);
    if (methods === undefined) this.#routes.set(route, (methods = new Map<string, Figures>()));
    const known = METHODS.has(method) ? method : 'other';
    let figures = methods.get(known);
    if (figures === undefined) {
      figures = {
        classes: [0, 0, 0, 0, 0, 0],
        buckets: Array.from({ length: SECONDS.length + 1 }, () => 0),
        seconds: 0,
      };
      methods.set(known, figures);
    }
    const place = Math.min(Math.max(Math.trunc(status / 100), 0), 5);
    figures.classes[place] = (figures.classes[place] ?? 0) + 1;
    let bucket = 0;
    while (bucket < SECONDS.length && seconds > (SECONDS[bucket] ?? 0)) bucket += 1;
    figures.buckets[bucket] = (figures.buckets[bucket] ?? 0) + 1;
    figures.seconds += seconds;
  }

  /** Notes a refusal, by its status and the type of its error. */
  rejected(status: number, type: string): void {
    const reason =
      REASONS[type] ??
      (status === 401 ? 'unauthenticated' : status === 403 ? 'forbidden' : status === 503 ? 'unavailable' : 'other');
    this.#rejected.set(reason, (this.#rejected.get(reason) ?? 0) + 1);
  }

  /** How many answers there were. */
  get total(): number {
    let total = 0;
    for (const methods of this.#routes.values()) {
      for (const { classes } of methods.values()) total += classes.reduce((sum, count) => sum + count, 0);
    }
    return total;
  }

  expose(page: Exposition): void {
    const totals: Sample[] = [];
    const times: Distribution[] = [];
    for (const [route, methods] of this.#routes) {
      for (const [method, { classes, buckets, seconds }] of methods) {
        const labels = { route: route?.path ?? 'unmatched', method };
        for (const [digit, value] of classes.entries()) {
          if (value > 0) totals.push({ labels: { ...labels, status: `${String(digit)}xx` }, value });
        }
        times.push({ labels, counts: buckets, sum: seconds });
      }
    }
    page.counter('sparrow_http_requests_total', 'Requests answered, by route, method and class of status.', totals);
    page.histogram(
      'sparrow_http_request_duration_seconds',
      'Time from a request’s headers to its answer being ready to send.',
      SECONDS,
      times,
    );
    page.gauge('sparrow_http_requests_active', 'Requests that are being answered.', this.active);
    page.counter(
      'sparrow_http_requests_rejected_total',
      'Requests refused before any work was done for them, by reason.',
      [...this.#rejected].map(([reason, value]) => ({ labels: { reason }, value })),
    );
  }
}
