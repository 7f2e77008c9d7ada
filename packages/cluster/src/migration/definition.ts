import { type Json, isObject } from '../json.js';
import { semanticIn } from '../passage-mappings.js';
import { MigrationError } from './asking.js';

/** An index as `GET /{index}` tells of it. */
export interface IndexDefinition {
  readonly aliases: Json;
  readonly mappings: Json;
  readonly settings: { readonly index: Json };
}

/** Settings that mean the same on both sides. All others, and those that only the server writes, are left out and told. */
const MOVED: ReadonlySet<string> = new Set([
  ...[
    'number_of_shards',
    'number_of_replicas',
    'refresh_interval',
    'default_pipeline',
    'final_pipeline',
    'hidden',
    'analysis',
    'similarity',
  ],
  ...['mapping', 'query', 'highlight', 'max_result_window', 'max_inner_result_window', 'max_terms_count'],
  ...['max_ngram_diff', 'max_shingle_diff', 'max_rescore_window', 'max_docvalue_fields_search', 'max_regex_length'],
]);

const OF_THE_SERVER: ReadonlySet<string> = new Set([
  'uuid',
  'creation_date',
  'version',
  'provided_name',
  'replication',
  'routing',
]);

/** The body that makes an index like another one, and the settings that it does not have of it. */
export function bodyLike(
  { aliases, mappings, settings: { index: settings } }: IndexDefinition,
  shards: number | undefined,
): { readonly body: Json; readonly leftOut: readonly string[] } {
  const kept = Object.entries(settings).filter(([name]) => MOVED.has(name));
  const leftOut = Object.keys(settings).filter((name) => !MOVED.has(name) && !OF_THE_SERVER.has(name));
  const index = {
    ...Object.fromEntries(kept),
    ...(shards === undefined ? {} : { number_of_shards: String(shards) }),
  };
  return { body: { settings: { index }, mappings, aliases }, leftOut };
}

/** @throws {MigrationError} for an index whose documents cannot be had as they were put, their vectors with them */
export function checkWhole(name: string, { mappings }: IndexDefinition): void {
  const source = mappings['_source'];
  if (!isObject(source)) return;
  const part = ['excludes', 'includes'].find((it) => Array.isArray(source[it]) && (source[it] as unknown[]).length > 0);
  if (source['enabled'] === false || part !== undefined) {
    const why = part === undefined ? 'keeps no _source' : `keeps a part of its _source only ([_source.${part}])`;
    throw new MigrationError(`index [${name}] ${why}, so its documents cannot be moved: leave it out with --index`);
  }
}

/** The inference endpoints that the `semantic_text` fields of indices name. */
export function endpointsOf(definitions: readonly IndexDefinition[]): ReadonlySet<string> {
  const fields = definitions.flatMap(({ mappings }) => Object.values(semanticIn(mappings)));
  const named = fields.flatMap((field) => [field['inference_id'], field['search_inference_id']]);
  return new Set(named.filter((id) => typeof id === 'string'));
}
