import { HttpError } from '../errors.js';
import { type Endpoint, type Texts, local } from './types.js';

/** A list that is always empty here. */
interface None {
  readonly path: string;
  /** Name of the path parameter that asks for one of the list. */
  readonly by?: string;
  readonly params?: readonly string[];
  /** Whether clients ask for it by `POST`, as their specification has it. */
  readonly posted?: boolean;
  readonly empty: object;
  /** What is said of one that is asked for by its name. Where this is left out, the list is empty for every name too. */
  readonly missing?: (name: string) => string;
}

const PAGED = ['allow_no_match', 'exclude_generated', 'from', 'size'];

/**
 * Lists of what only Elasticsearch has. Programs that tidy up a cluster, like the test suites of Elastic’s clients, ask for each before
 * they delete what is in it: it is true that there is nothing, and it lets them go on. What would make something is refused.
 */
const LISTS: readonly None[] = [
  { path: '/_rollup/job', by: 'id', empty: { jobs: [] } },
  {
    ...{ path: '/_ilm/policy', by: 'name', params: ['master_timeout', 'timeout'], empty: {} },
    missing: (name) => `Lifecycle policy not found: ${name}`,
  },
  {
    ...{ path: '/_slm/policy', by: 'name', params: ['master_timeout', 'timeout'], empty: {} },
    missing: (name) => `snapshot lifecycle policy or policies [${name}] not found, no policies are configured`,
  },
  {
    ...{ path: '/_ccr/auto_follow', by: 'name', params: ['master_timeout'], empty: { patterns: [] } },
    missing: (name) => `auto-follow pattern [${name}] is missing`,
  },
  { path: '/_enrich/policy', by: 'name', params: ['master_timeout'], empty: { policies: [] } },
  // There is no processor [grok].
  { path: '/_ingest/processor/grok', params: ['ecs_compatibility'], empty: { patterns: {} } },
  { path: '/_nodes/shutdown', params: ['master_timeout', 'timeout'], empty: { nodes: [] } },
  {
    ...{ path: '/_transform', by: 'id', params: PAGED, empty: { count: 0, transforms: [] } },
    missing: (name) => `Transform with id [${name}] could not be found`,
  },
  {
    ...{ path: '/_ml/anomaly_detectors', by: 'id', params: PAGED, empty: { count: 0, jobs: [] } },
    missing: (name) => `No known job with id '${name}'`,
  },
  {
    ...{ path: '/_ml/datafeeds', by: 'id', params: PAGED, empty: { count: 0, datafeeds: [] } },
    missing: (name) => `No datafeed with id [${name}] exists`,
  },
  {
    ...{ path: '/_ml/data_frame/analytics', by: 'id', params: PAGED, empty: { count: 0, data_frame_analytics: [] } },
    missing: (name) => `No known data frame analytics with id [${name}]`,
  },
  {
    ...{ path: '/_ml/filters', by: 'id', params: PAGED, empty: { count: 0, filters: [] } },
    missing: (name) => `No filter with id [${name}] exists`,
  },
  {
    ...{ path: '/_ml/calendars', by: 'id', params: PAGED, posted: true, empty: { count: 0, calendars: [] } },
    missing: (name) => `No calendar with id [${name}]`,
  },
];

const BY_PATH: ReadonlyMap<string, None> = new Map(
  LISTS.flatMap((list) => pathsOf(list).map((path) => [path, list] as const)),
);

/** Lists that are always empty. */
export const NONE_ENDPOINTS: readonly Endpoint[] = LISTS.flatMap(({ params = [], posted = false, ...list }) => {
  const routes = pathsOf(list).map((path) => `${posted ? 'GET|POST' : 'GET'} ${path}`);
  return local('list_none', 'cluster:monitor/xpack/info', routes, { params });
});

function pathsOf({ path, by }: None): readonly string[] {
  return by === undefined ? [path] : [path, `${path}/{${by}}`];
}

/**
 * The body of an empty list, for all and for patterns.
 *
 * @param route the path of one of {@link NONE_ENDPOINTS}
 * @throws {HttpError} 404 for one that is asked for by its name
 */
export function listNone(route: string, path: Texts, query: Texts): object {
  const { by, empty, missing } = BY_PATH.get(route) ?? { empty: {} };
  const name = by === undefined ? undefined : path[by];
  if (name === undefined || missing === undefined) return empty;
  const isPattern = name === '_all' || name.split(',').every((one) => one.includes('*'));
  if (isPattern && query['allow_no_match'] !== 'false') return empty;
  throw new HttpError('not_found', missing(name));
}
