import type { SearchRequest } from '@sparrow-search/engine';
import {
  type Difference,
  type Fusion,
  type Setting,
  type Tuning,
  FEWEST,
  FOLDS,
  REPEATS,
  RESAMPLES,
  SEED,
} from '@sparrow-search/evaluation';

import { type Sink, counted, inLine, number, table } from '../terminal.js';

/** nDCG@10 of a fusion with default settings: by the server, and repeated here from the server's lists. */
export interface Parity {
  readonly fusion: Fusion;
  readonly server: number;
  readonly here: number;
}

/** The request that is recommended, and its nDCG@10 where the server was asked again. */
export interface Recommended {
  readonly request: SearchRequest;
  readonly measured?: number;
}

/** The result of tuning, as `--json` shows it. */
export type Report = ReturnType<typeof reported>;

const digits = (value: number): number => Number(value.toFixed(4));

/** The result as it is written down, with the request that it recommends. */
export function reported(tuning: Tuning, parity: readonly Parity[], body: Recommended) {
  const { best, defaults, linear, heldOut, choice, reason, needed, neededFor } = tuning;
  return {
    queries: tuning.queries,
    settings: tuning.settings,
    protocol: { folds: FOLDS, repeats: REPEATS, resamples: RESAMPLES, seed: SEED, fewest_queries: FEWEST },
    parity,
    defaults: { ...defaults.setting, 'nDCG@10': digits(defaults.ndcg) },
    ...(linear && { linear_defaults: differenceOf(linear) }),
    held_out: differenceOf(heldOut),
    best: {
      ...best.setting,
      nDCG_on_all_queries: digits(best.ndcg),
      chosen: best.chosen,
      trainings: best.trainings,
    },
    recommended: choice,
    ...(reason !== undefined && { reason }),
    ...(needed !== undefined && { queries_needed: needed }),
    ...(neededFor !== undefined && { for_a_gain_of: digits(neededFor) }),
    body: body.request,
    ...(body.measured !== undefined && { body_measured: digits(body.measured) }),
  };
}

function differenceOf({ ndcg, gain, interval: { low, high } }: Difference) {
  return { 'nDCG@10': digits(ndcg), difference: digits(gain), interval: [digits(low), digits(high)] as const };
}

/** The result for people. */
export function shownTuning(out: Sink, report: Report): string {
  const { defaults, linear_defaults: linear, held_out: held, best, protocol } = report;
  const row = (name: string, one: ReturnType<typeof differenceOf>): string[] => {
    const [low, high] = one.interval;
    return [name, one['nDCG@10'].toFixed(4), signed(one.difference), `${signed(low)} to ${signed(high)}`];
  };
  const rows = [
    ["rrf, the server's defaults", defaults['nDCG@10'].toFixed(4), '', ''],
    ...(linear === undefined ? [] : [row('linear with zscore, as sparrow search asks', linear)]),
    row('tuned, on queries held out', held),
  ];
  const how = `${number(report.settings)} settings, chosen by ${String(protocol.folds)}-fold cross-validation, ${String(protocol.repeats)} times`;
  const heading = ['fusion', 'nDCG@10', 'difference', '95% interval'];
  // Names of fields come from the server.
  const body = inLine(JSON.stringify(report.body));
  const tuned = `${described(best)} (chosen in ${String(best.chosen)} of ${String(best.trainings)} trainings)`;
  return `\n${how}\n${table(out, heading, rows, 'nDCG@10 difference')}\nbest of all: ${tuned}\n${out.bold(advice(report))}\n${body}\n`;
}

function described({ fusion, constant, weights: { words, sparse, dense } }: Setting): string {
  const kind = fusion === 'rrf' ? `rrf with rank_constant ${String(constant)}` : 'linear with zscore';
  return `${kind}, words ${String(words)}, sparse ${String(sparse)}, dense ${String(dense)}`;
}

/** What to do, in a sentence or two. */
function advice(report: Report): string {
  const { queries, recommended, reason, queries_needed: needed, for_a_gain_of: gain, body_measured: measured } = report;
  if (recommended === 'linear')
    return 'The gain of linear, with its defaults, is more than chance: search with this request.';
  if (recommended === 'tuned') {
    return `The gain is more than chance: search with this request. The server reaches ${(measured ?? 0).toFixed(4)} with it, on the queries that chose it.`;
  }
  const judged = counted(queries, 'judged query', 'judged queries');
  const gained = `a gain of ${(gain ?? 0).toFixed(4)}`;
  const more = `with about ${number(needed ?? 0)}, ${gained} would probably show (4 of 5)`;
  switch (reason) {
    case 'best':
      return 'Keep the defaults: no other setting is better.';
    case 'worse':
      return 'Keep the defaults: what tuning chooses does worse on other queries.';
    case 'too-few':
      return `Keep the defaults: too few judged queries (${number(queries)}). At least ${number(FEWEST)} are needed${needed === undefined ? '' : `; ${more}`}.`;
    default:
      if (gain === undefined) return 'Keep the defaults: the best setting ranks about as they do.';
      return needed === undefined
        ? `Keep the defaults: with ${judged}, ${gained} would probably have shown (4 of 5).`
        : `Keep the defaults: too few judged queries (${number(queries)}) for so small a gain; ${more}.`;
  }
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(4)}`;
}
