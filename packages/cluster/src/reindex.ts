import type { EngineRequest } from '@sparrow-search/engine';

import type { PipelinesOf } from './by-query.js';
import type { CopyPlan } from './copy.js';
import { illegal, notOverCluster, unparsable } from './errors.js';
import { type Json, type Member, isObject, isSet, members, parseRequest, rawOf, textOf, whole } from './json.js';

/** The body of a `_reindex`. */
export interface Reindex {
  /** Names and patterns, separated by commas. */
  readonly source: string;
  readonly dest: string;
  readonly pipeline: string | undefined;
  /** The query as it is written. */
  readonly query: string | undefined;
  readonly batch: number;
  readonly sourceFilter: unknown;
  readonly creates: boolean;
  readonly proceeds: boolean;
  readonly maxDocs: number | undefined;
  /** What the body has that only the cluster's own copy can do. */
  readonly onlyCluster: string | undefined;
  /** The body for the cluster's own copy, which runs no pipeline. */
  readonly forCluster: (source: string, query: string | undefined) => string;
}

const BATCH = 1000;
const MOST_BATCH = 10_000;
const MOST_SLICES = 1024;

const OF_BODY = ['source', 'dest', 'conflicts', 'max_docs', 'size', 'script'];
const OF_SOURCE = ['index', 'size', 'query', '_source', 'slice', 'sort'];
const OF_DEST = ['index', 'pipeline', 'op_type', 'version_type', 'routing'];

/** @throws {EngineError} 400 for what is malformed or not known */
export function readReindex(text: string): Reindex {
  const body = parseRequest(text);
  if (!isObject(body)) throw unparsable('[reindex] expects an object');
  const { source, dest } = body;
  check('reindex', body, OF_BODY);
  if (!isObject(source) || source['index'] === undefined)
    throw invalid('use _all if you really want to copy from all existing indexes');
  if (isObject(source['remote'])) throw notOverCluster('[remote] of a reindex');
  check('source', source, OF_SOURCE);
  if (!isObject(dest) || typeof dest['index'] !== 'string') throw invalid('index is missing');
  check('dest', dest, OF_DEST);
  const { index } = source;
  const listed = Array.isArray(index) ? (index as unknown[]) : [index];
  if (!listed.every((it) => typeof it === 'string'))
    throw unparsable('[source] [index] has to be a string or an array of strings');
  const names = listed.join(',');
  const pipeline = dest['pipeline'];
  const given = {
    script: body['script'],
    slice: source['slice'],
    sort: source['sort'],
    version_type: dest['version_type'],
    routing: dest['routing'],
  };
  return {
    source: names,
    dest: dest['index'],
    pipeline: typeof pipeline === 'string' ? pipeline : undefined,
    query: inside(text, 'query'),
    batch: number('size', source['size']) ?? BATCH,
    sourceFilter: source['_source'],
    creates: dest['op_type'] === 'create',
    proceeds: body['conflicts'] === 'proceed',
    maxDocs: number('max_docs', body['max_docs'] ?? body['size']),
    onlyCluster: Object.entries(given).find(([, value]) => value !== undefined)?.[0],
    forCluster: (expression, query) =>
      JSON.stringify({
        ...body,
        source: {
          ...source,
          index: expression.split(','),
          ...(query === undefined ? {} : { query: JSON.parse(query) as unknown }),
        },
        dest: { ...dest, pipeline: '_none' },
      }),
  };
}

/**
 * What a copy is to do that Sparrow carries out.
 *
 * @param how it is carried out, for errors
 */
export function planOf(
  asked: Reindex,
  source: string,
  query: string | undefined,
  pipeline: string | undefined,
  parameters: Readonly<Record<string, string>>,
  how: string,
): CopyPlan {
  if (asked.onlyCluster !== undefined) throw notOverCluster(`[${asked.onlyCluster}] of a reindex ${how}`);
  const { slices, requests_per_second: perSecond, max_docs: maxDocs, refresh, require_alias: alias } = parameters;
  checkSlices(slices);
  if (alias === 'true') throw notOverCluster(`[require_alias] of a reindex ${how}`);
  if (asked.batch < 1 || asked.batch > MOST_BATCH)
    throw illegal(`[size] must be from 1 to ${String(MOST_BATCH)}, but was [${String(asked.batch)}]`);
  const pace = paceOf(perSecond);
  if (source.split(',').includes(asked.dest)) {
    throw invalid(`reindex cannot write into an index its reading from [${asked.dest}]`);
  }
  return {
    source,
    query: query === undefined ? undefined : (JSON.parse(query) as unknown),
    sourceFilter: asked.sourceFilter,
    batch: asked.batch,
    dest: asked.dest,
    pipeline,
    creates: asked.creates,
    proceeds: asked.proceeds,
    maxDocs: number('max_docs', maxDocs) ?? asked.maxDocs ?? Number.MAX_SAFE_INTEGER,
    perSecond: pace,
    refreshes: isSet(refresh),
  };
}

/** Documents a second that a request allows; 0 for as many as there can be. */
export function paceOf(perSecond: string | undefined): number {
  const pace = perSecond === undefined || perSecond === '-1' ? 0 : Number(perSecond);
  if (!(pace > 0) && pace !== 0)
    throw illegal(`[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.`);
  // As many as there can be, which JSON, in which a plan is kept, has no number for.
  return pace === Infinity ? 0 : pace;
}

/** Parameters of an `_update_by_query` that a plan has a meaning for, or that change nothing of what it does. */
const IN_PLACE: ReadonlySet<string> = new Set([
  ...[
    'pipeline',
    'conflicts',
    'scroll_size',
    'requests_per_second',
    'max_docs',
    'refresh',
    'slices',
    'scroll',
    'timeout',
  ],
  ...['wait_for_completion', 'wait_for_active_shards', 'expand_wildcards', 'ignore_unavailable', 'allow_no_indices'],
]);

/**
 * What an `_update_by_query` is to do: documents are written again where they are, each if nobody else wrote it in between.
 *
 * @param text its body, with the query in the cluster's form
 * @param pipelines that the documents go through, if any
 * @param isThrough whether they go through these, or through the last one of their index
 */
export function planInPlace(
  source: string,
  text: string,
  { query }: EngineRequest,
  pipelines: PipelinesOf,
  isThrough: boolean,
): CopyPlan {
  const how = isThrough ? 'through a pipeline' : 'in an index with semantic_text fields';
  const what = `an _update_by_query ${how}`;
  const body = JSON.parse(text) as Json;
  const unknown =
    Object.keys(query).find((name) => !IN_PLACE.has(name)) ??
    Object.keys(body).find((name) => !['query', 'conflicts', 'max_docs'].includes(name));
  if (unknown !== undefined) throw notOverCluster(`[${unknown}] of ${what}`);
  const dest = source;
  const asked: Reindex = {
    source,
    dest,
    ...{ pipeline: undefined, query: undefined, sourceFilter: undefined, creates: false, onlyCluster: undefined },
    batch: number('scroll_size', query['scroll_size']) ?? BATCH,
    proceeds: (query['conflicts'] ?? body['conflicts']) === 'proceed',
    maxDocs: number('max_docs', body['max_docs']),
    forCluster: () => text,
  };
  const given = body['query'] === undefined ? undefined : JSON.stringify(body['query']);
  const plan = planOf({ ...asked, dest: '' }, source, given, pipelines.all, query, how);
  return { ...plan, dest, inPlace: true, pipelines: pipelines.each };
}

/** Parts in which a copy could be made; the models of a server are busy with one of them already. */
function checkSlices(slices: string | undefined): void {
  if (slices === undefined || slices === 'auto') return;
  if (!/^[1-9]\d*$/.test(slices)) throw illegal('[slices] must be a positive integer or the string "auto"');
  if (Number(slices) <= MOST_SLICES) return;
  const most = String(MOST_SLICES);
  throw illegal(`The number of slices [${slices}] is too large. It must be less than [${most}].`);
}

function inside(text: string, name: string): string | undefined {
  const source = of(text, whole(text).start, 'source');
  const member = source === undefined ? undefined : of(text, source.start, name);
  return member === undefined ? undefined : rawOf(text, member);
}

function of(text: string, at: number, name: string): Member | undefined {
  return members(text, at).find((it) => it.name === name);
}

function check(parser: string, given: Readonly<Record<string, unknown>>, known: readonly string[]): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw unparsable(`[${parser}] unknown field [${unknown}]`);
}

function number(name: string, given: unknown): number | undefined {
  if (given === undefined) return undefined;
  const value = Number(given);
  if (!Number.isInteger(value) || value < 0)
    throw illegal(`[${name}] parameter cannot be negative, found [${textOf(given) ?? ''}]`);
  return value;
}

function invalid(reason: string): Error {
  return illegal(`Validation Failed: 1: ${reason};`);
}
