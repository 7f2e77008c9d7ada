import { createHash } from 'node:crypto';

import { HttpError } from '@sparrow-search/endpoints';

import { type Identity, describe } from '../identity.js';

/** When this interface was made; there is no other date on which a license could have been issued. */
const ISSUED = Date.parse('2026-11-21T00:00:00.000Z');

/** The body of `GET /_license`. Clients ask whether it is active, and of which type: nothing here is for a better one. */
export function license(identity: Identity): object {
  return {
    license: {
      status: 'active',
      uid: uidOf(identity),
      type: 'basic',
      issue_date: new Date(ISSUED).toISOString(),
      issue_date_in_millis: ISSUED,
      max_nodes: 1000,
      max_resource_units: null,
      issued_to: identity.clusterName,
      issuer: 'sparrow',
      start_date_in_millis: -1,
    },
  };
}

/** What Elasticsearch calls features, and whether they are here. */
const FEATURES: Readonly<Record<string, boolean>> = {
  ...{ aggregate_metric: false, analytics: true, archive: false, ccr: false, data_streams: false, data_tiers: false },
  ...{
    enrich: false,
    enterprise_search: false,
    eql: false,
    esql: false,
    frozen_indices: false,
    graph: false,
    ilm: false,
  },
  ...{ logsdb: false, logstash: false, ml: true, monitoring: false, rollup: false, searchable_snapshots: false },
  ...{ security: true, slm: false, spatial: false, sql: false, transform: false, universal_profiling: false },
  ...{ voting_only: false, watcher: false },
};

const CATEGORIES: readonly string[] = ['build', 'license', 'features'];

/**
 * The body of `GET /_xpack`.
 *
 * @throws {HttpError} 400 for a category that there is not
 */
export function xpack(identity: Identity, { categories, human }: Readonly<Record<string, string>>): object {
  const named: readonly string[] =
    categories === undefined || categories === '' ? CATEGORIES : categories.split(',').map((one) => one.trim());
  const unknown = named.find((one) => one !== '_all' && one !== '_none' && !CATEGORIES.includes(one));
  if (unknown !== undefined) {
    throw new HttpError('illegal_argument', `No enum constant XPackInfoRequest.Category.${unknown.toUpperCase()}`);
  }
  const shown = (category: string): boolean => named.includes(category) || named.includes('_all');
  const { build_hash: hash, build_date: date } = (describe(identity) as { version: Record<string, unknown> }).version;
  const { uid, type, status } = (license(identity) as { license: Record<string, unknown> }).license;
  const features = Object.entries(FEATURES).map(([name, here]) => [name, { available: here, enabled: here }] as const);
  return {
    ...(shown('build') ? { build: { hash, date } } : {}),
    ...(shown('license') ? { license: { uid, type, mode: type, status } } : {}),
    ...(shown('features') ? { features: Object.fromEntries(features) } : {}),
    ...(human === 'false' ? {} : { tagline: 'You know, for X' }),
  };
}

/** An id in the form of a UUID that is the same as long as the cluster is. */
function uidOf({ clusterUuid }: Identity): string {
  const digits = createHash('sha256').update(clusterUuid).digest('hex');
  return digits.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');
}
