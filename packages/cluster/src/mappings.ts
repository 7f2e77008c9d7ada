import { knnVector } from './dense-fields.js';
import { illegal, notOverCluster } from './errors.js';
import { isObject, textOf, without } from './json.js';
import { COMPANION, TEXTS, companionMapping, leavesOut, sourceAsPut, withoutCompanion } from './passage-mappings.js';
import type { Product } from './product.js';

/** Anything read from JSON that is an object. */
type Json = Record<string, unknown>;

/**
 * Where the mapping of a cluster's index keeps what is Sparrow's: in `_meta.sparrow`, under `fields` how fields were put, under `models`
 * which models filled fields by pipelines, and under `semantic` which filled `semantic_text` fields, all by the paths of fields. Under
 * `change` stands the change of a model that is under way, under `templates` how dynamic templates were put, under `had_templates` that
 * there were some before of which fields have come, and under `final_pipeline` the pipeline that runs last on documents.
 */
export const META = 'sparrow';

/** Types that a cluster has under another name, and fields of which are written down. */
const RENAMED: ReadonlyMap<string, string> = new Map([
  ['sparse_vector', 'rank_features'],
  ['dense_vector', 'knn_vector'],
  ['semantic_text', 'text'],
]);

/** What a `sparse_vector` may say where the cluster has `rank_features` for it. */
const SPARSE_KEYS: ReadonlySet<string> = new Set(['type', 'meta', 'store', 'index_options']);

/**
 * A mapping as the cluster gets it. `sparse_vector` becomes `rank_features`, and `dense_vector` becomes `knn_vector`, where the cluster
 * has no such types. How they were put is written down in the mapping itself, so that every Sparrow node can show it.
 *
 * @param mapping a body of `PUT _mapping`, or the `mappings` of an index or template
 * @param current the cluster's mapping as it is, whose fields that were written down a new `_meta` must not lose
 * @throws {EngineError} 400 for types that cannot be translated
 */
export function toCluster(mapping: unknown, product: Product, current?: unknown): unknown {
  if (!isObject(mapping)) return mapping;
  const fields: Json = writtenDown(current);
  const translated: Json = { ...mapping };
  if (mapping['properties'] !== undefined) {
    translated['properties'] = properties(mapping['properties'], '', product, fields);
  }
  const templates = templatesFor(mapping['dynamic_templates'], product);
  if (templates !== undefined) translated['dynamic_templates'] = templates;
  const companion = companionMapping(fields, product, ownMeta(current)['semantic']);
  if (companion !== undefined)
    translated['properties'] = { ...(translated['properties'] as Json), [COMPANION]: companion };
  // A document's passages need their place before it is written.
  const brings = ownTemplates(mapping['dynamic_templates'], product).includes('semantic_text');
  if (companion !== undefined || brings) {
    if (current === undefined) translated['_source'] = withoutCompanion(mapping['_source']);
    else if (!leavesOut(current)) {
      throw notOverCluster(
        'a semantic_text field in an index that was made without one',
        'create the index with the field, or copy it into such an index with _reindex',
      );
    }
  }
  const { fields: before, ...own } = ownMeta(current);
  const putTemplates = mapping['dynamic_templates'];
  const replaces = putTemplates !== undefined && own['templates'] !== undefined;
  const kept: Json =
    templates !== undefined
      ? { ...own, templates: putTemplates }
      : replaces
        ? { ...without(own, 'templates'), had_templates: true }
        : own;
  if (Object.keys(fields).length === 0 && Object.keys(kept).length === 0 && before === undefined) return translated;
  const given = mapping['_meta'] ?? (isObject(current) ? current['_meta'] : undefined);
  const meta = isObject(given) ? given : {};
  if (isObject(mapping['_meta']) && META in mapping['_meta']) {
    throw illegal(`[_meta.${META}] of a mapping belongs to Sparrow`);
  }
  return { ...translated, _meta: { ...meta, [META]: { ...kept, fields } } };
}

/** A mapping of the cluster as it was put: what {@link toCluster} did is undone. */
export function fromCluster(mapping: unknown): unknown {
  if (!isObject(mapping)) return mapping;
  const fields = writtenDown(mapping);
  if (Object.keys(ownMeta(mapping)).length === 0) return mapping;
  const { _meta: meta, ...rest } = mapping;
  const others = without(meta as Json, META);
  const shown: Json = { ...rest, ...(Object.keys(others).length === 0 ? {} : { _meta: others }) };
  const { templates, had_templates: had } = ownMeta(mapping);
  const byTemplates =
    had === true || (Array.isArray(templates) && JSON.stringify(templates).includes('"sparse_vector"'));
  if (isObject(rest['properties']))
    shown['properties'] = restored(without(rest['properties'], COMPANION), '', fields, byTemplates);
  if (templates !== undefined) shown['dynamic_templates'] = templates;
  const source = sourceAsPut(rest['_source']);
  return source === undefined ? without(shown, '_source') : { ...shown, _source: source };
}

/** The fields that were put in another form than the cluster has, by their paths. */
export function writtenDown(mapping: unknown): Json {
  const { fields } = ownMeta(mapping);
  return isObject(fields) ? { ...fields } : {};
}

/** What a mapping has of Sparrow's. */
export function ownMeta(mapping: unknown): Readonly<Json> {
  const meta = isObject(mapping) ? mapping['_meta'] : undefined;
  const own = isObject(meta) ? meta[META] : undefined;
  return isObject(own) ? own : {};
}

/** Types of fields that are written down by their paths. */
const KEPT: ReadonlySet<string> = new Set(['semantic_text', 'sparse_vector', 'dense_vector', 'rank_features']);
/** What nothing can be written down under: to set it changes what an object inherits. */
const NO_NAME = '__proto__';

function properties(given: unknown, above: string, product: Product, fields: Json): unknown {
  if (!isObject(given)) return given;
  return Object.fromEntries(
    Object.entries(given).map(([name, field]) => [name, one(field, `${above}${name}`, product, fields)]),
  );
}

function one(field: unknown, path: string, product: Product, fields: Json): unknown {
  if (!isObject(field)) return field;
  const { type } = field;
  if (path === COMPANION) throw illegal(`a field cannot be called [${COMPANION}]`);
  if (KEPT.has(String(type)) && path.split('.').includes(NO_NAME))
    throw illegal(`a field of type [${String(type)}] cannot be called [${NO_NAME}]`);
  if (type === 'semantic_text') {
    fields[path] = field;
    return TEXTS;
  }
  if (type === 'sparse_vector' && product.name === 'OpenSearch') {
    const more = Object.keys(field).find((key) => !SPARSE_KEYS.has(key));
    if (more !== undefined) throw notOverCluster(`[${more}] of the sparse_vector field [${path}]`);
    // What is stored beside tokens is their text, which is shown the same; options that prune nothing change nothing.
    const { index_options: options, ...rest } = without(field, 'store');
    const isPlain = options === undefined || (isObject(options) && Object.keys(without(options, 'prune')).length === 0);
    if (!isPlain || (isObject(options) && options['prune'] === true))
      throw notOverCluster(`[index_options] of the sparse_vector field [${path}]`, 'searches are exact');
    fields[path] = field;
    return { ...rest, type: 'rank_features' };
  }
  if (type === 'dense_vector' && product.name === 'OpenSearch') {
    const translated = knnVector(path, field, product);
    fields[path] = field;
    return translated;
  }
  // Whatever was written down for this path is no longer so.
  if (typeof type === 'string') Reflect.deleteProperty(fields, path);
  // A field of this type that is not written down may have come as another one, by a template.
  if (type === 'rank_features' && product.name === 'OpenSearch') fields[path] = { type };
  const translated: Json = { ...field };
  for (const below of ['properties', 'fields']) {
    if (field[below] !== undefined) translated[below] = properties(field[below], `${path}.`, product, fields);
  }
  return translated;
}

/**
 * Dynamic templates as the cluster has them; undefined where they can stay as they are. Fields that come by one of the cluster's are not
 * written down: what they were put as has to be told from the type that they have in the cluster. Those that Sparrow makes are left out.
 */
function templatesFor(templates: unknown, product: Product): unknown {
  if (!Array.isArray(templates)) return undefined;
  const found = { changed: false };
  const translated = (templates as unknown[]).flatMap((template) => {
    const type = typeOf(template);
    const isOwn = isOwnType(type, product);
    if (!isOwn && (type !== 'sparse_vector' || product.name === 'Elasticsearch')) return [template];
    found.changed = true;
    if (isOwn) return [];
    const each = Object.entries(template as Json).map(([name, rule]) => [
      name,
      { ...(rule as Json), mapping: { type: RENAMED.get('sparse_vector') } },
    ]);
    return [Object.fromEntries(each) as Json];
  });
  return found.changed ? translated : undefined;
}

/** The types of the fields that Sparrow makes of dynamic templates, as the cluster cannot. */
export function ownTemplates(templates: unknown, product: Product): readonly string[] {
  const all = Array.isArray(templates) ? (templates as unknown[]) : [];
  return all.map((template) => typeOf(template)).filter((type) => isOwnType(type, product));
}

function typeOf(template: unknown): string {
  const [rule] = isObject(template) ? Object.values(template) : [];
  const mapping = isObject(rule) && isObject(rule['mapping']) ? rule['mapping'] : {};
  return textOf(mapping['type']) ?? '';
}

function isOwnType(type: string, { name: product }: Product): boolean {
  return type === 'semantic_text' || (type === 'dense_vector' && product === 'OpenSearch');
}

/** The paths of the fields of some types. */
export function pathsOfTypes(mapping: unknown, types: ReadonlySet<string>, above = ''): readonly string[] {
  const properties = isObject(mapping) && isObject(mapping['properties']) ? Object.entries(mapping['properties']) : [];
  return properties.flatMap(([name, field]) => {
    const path = `${above}${name}`;
    const own = isObject(field) && types.has(String(field['type'])) ? [path] : [];
    return [...own, ...pathsOfTypes(field, types, `${path}.`)];
  });
}

/** @param byTemplates whether fields that are not written down may have come as `sparse_vector` by a template */
function restored(given: Json, above: string, fields: Json, byTemplates: boolean): Json {
  return Object.fromEntries(
    Object.entries(given).map(([name, field]) => {
      const path = `${above}${name}`;
      if (!isObject(field)) return [name, field];
      const put = fields[path];
      if (isObject(put) && RENAMED.get(String(put['type'])) === field['type']) return [name, put];
      if (byTemplates && put === undefined && field['type'] === 'rank_features')
        return [name, { ...field, type: 'sparse_vector' }];
      const shown: Json = { ...field };
      for (const below of ['properties', 'fields']) {
        if (isObject(field[below])) shown[below] = restored(field[below], `${path}.`, fields, byTemplates);
      }
      return [name, shown];
    }),
  );
}
