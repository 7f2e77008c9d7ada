import type { EngineReply, EngineRequest } from '@sparrow-search/engine';

import { illegal, notOverCluster, unparsable } from './errors.js';
import { type FinalPipelines, finalShown, withFinal, withoutFinal } from './final-pipelines.js';
import { checkForeign } from './foreign-indices.js';
import { decode, isObject, isSet, parseRequest, textOf, without, parseAnswer } from './json.js';
import type { KnownIndices } from './known-indices.js';
import { fromCluster, ownMeta, ownTemplates, toCluster } from './mappings.js';
import { type Names, encodeExpression, isPattern } from './names.js';
import type { Product } from './product.js';
import { replyOf } from './replies.js';
import { semanticIn } from './passage-mappings.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Answered, Transport } from './transport.js';

/** What operations on indices need of their surroundings. */
export interface Administration {
  readonly transport: Transport;
  readonly product: Product;
  readonly names: Names;
  readonly indices: KnownIndices;
  readonly semantic: SemanticFields;
  readonly finals: FinalPipelines;
}

type Json = Readonly<Record<string, unknown>>;

const ACKNOWLEDGED: Answered = { status: 200, body: Buffer.from('{"acknowledged":true}'), text: false };

/** Answers `PUT /{index}`. */
export async function createIndex(
  context: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const { transport, product, names, semantic } = context;
  const { index = '' } = request.path;
  await names.check(request, [index]);
  const body = await newIndex(names, semantic, request, bytes);
  const made = await transport.ask({
    method: 'PUT',
    path: `/${encodeURIComponent(index)}`,
    query: request.query,
    body: JSON.stringify(withFinal(withVectorIndex(withMappings(body ?? {}, product), product, false))),
  });
  context.indices.forget();
  return replyOf(made);
}

/** What a body says of an index that is to be made, once it is known that the caller may make it so. */
async function newIndex(
  names: Names,
  semantic: SemanticFields,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<Json | undefined> {
  await checkForeign(names, request, bytes);
  if (bytes === undefined || bytes.length === 0) return undefined;
  const body = objectIn(bytes);
  refuseLookups(request, body['mappings']);
  const aliases = isObject(body['aliases']) ? Object.keys(body['aliases']) : [];
  await names.check(request, aliases, 'indices:admin/aliases');
  refuseFilters(request, body['aliases']);
  return 'mappings' in body ? { ...body, mappings: await semantic.checked(body['mappings']) } : body;
}

/** Where the operations that make an index from another one go. */
const FROM_ANOTHER: Readonly<Record<string, string>> = {
  rollover: '_rollover',
  clone_index: '_clone',
  shrink_index: '_shrink',
  split_index: '_split',
};

/** Answers the operations that make an index from another one; what the other one has written down of its fields goes with them. */
export async function makeFromAnother(
  context: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const { transport, product, names, semantic, finals } = context;
  const { index = '', target } = request.path;
  const isRollover = request.op === 'rollover';
  // The cluster makes the name of the next index from that of the last one, which nobody was asked about.
  if (isRollover && target === undefined && request.rights !== undefined)
    throw notOverCluster('a rollover to a name that is not given, for a key that may use some indices only,');
  await names.check(request, [index]);
  if (target !== undefined) await names.check(request, [target], 'indices:admin/create');
  const body = await newIndex(names, semantic, request, bytes);
  const [settings, last] = withoutFinal(body?.['settings']);
  const made = body === undefined ? undefined : withMappings(body, product);
  const sent = made === undefined || isRollover ? made && withFinal(made) : { ...made, settings };
  const places = [index, FROM_ANOTHER[request.op] ?? '', ...(target === undefined ? [] : [target])];
  const answered = await transport.ask({
    method: 'POST',
    path: `/${places.map(encodeURIComponent).join('/')}`,
    query: request.query,
    body: sent === undefined ? undefined : JSON.stringify(sent),
  });
  context.indices.forget();
  // The others have the mapping of the index that they are made from.
  if (answered.status === 200 && !isRollover && last !== undefined) await finals.put(target ?? '', last);
  return replyOf(answered);
}

/** Answers `PUT /{index}/_mapping`: each index keeps what was put in its own mapping. */
export async function putMapping(
  { transport, product, names, indices, semantic }: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const expression = await names.expression(request, request.path['index']);
  if (expression === undefined || bytes === undefined)
    throw illegal('Validation Failed: 1: mapping source is missing;');
  await checkForeign(names, request, bytes);
  const mapping = objectIn(bytes);
  refuseLookups(request, mapping);
  const { expand_wildcards: expand } = request.query;
  const known = await indices.read(expression, expand === undefined ? {} : { expand_wildcards: expand });
  const isPlain = Object.keys(ownMeta(toCluster(mapping, product))).length === 0;
  if (known.length === 0 || (isPlain && known.every(([, it]) => Object.keys(ownMeta(it)).length === 0))) {
    const path = `/${encodeExpression(expression)}/_mapping`;
    try {
      return replyOf(await transport.ask({ method: 'PUT', path, query: request.query, body: bytes }));
    } finally {
      indices.forget();
    }
  }
  let last: Answered | undefined;
  for (const [name] of known) {
    last = await semantic.turns.alone(name, async () => {
      // What is written down goes with what another server has just put.
      const path = `/${encodeURIComponent(name)}/_mapping`;
      const [[, found] = []] = await indices.read(name);
      const sent = JSON.stringify(toCluster(await semantic.checked(mapping, found), product, found ?? {}));
      return transport.ask({ method: 'PUT', path, query: request.query, body: sent });
    });
    if (last.status !== 200) break;
  }
  indices.forget();
  const brings = ownTemplates(mapping['dynamic_templates'], product).length > 0;
  if (brings || Object.keys(semanticIn(mapping)).length > 0) await semantic.untilKnown();
  if (last?.body.includes('index.knn setting is false') === true) {
    throw notOverCluster(
      'a dense_vector field in an index without the setting [index.knn]',
      'create the index with the field, or with this setting',
    );
  }
  return replyOf(last ?? ACKNOWLEDGED);
}

/** Answers `GET /{index}` and `GET /{index}/_mapping`: mappings as they were put. */
export async function getMappings({ transport, names }: Administration, request: EngineRequest): Promise<EngineReply> {
  const expression = await names.expression(request, request.path['index']);
  if (expression === undefined) return { status: 200, body: Buffer.from('{}') };
  const path = `/${encodeExpression(expression)}${request.op === 'get_mapping' ? '/_mapping' : ''}`;
  const answered = await transport.ask({ method: 'GET', path, query: request.query });
  if (answered.status !== 200 || !answered.body.includes('"sparrow"')) return replyOf(answered);
  const shown = Object.entries(parseAnswer(answered.body) as Json).map(([name, it]) => {
    if (!isObject(it) || !('mappings' in it)) return [name, it];
    const one = request.op === 'get_index' ? finalShown(it) : it;
    return [name, { ...one, mappings: fromCluster(it['mappings']) }];
  });
  return { status: 200, body: Buffer.from(JSON.stringify(Object.fromEntries(shown))) };
}

/** Answers `PUT /{index}/_settings`. */
export async function putSettings(
  { transport, names, finals }: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const expression = await names.expression(request, request.path['index']);
  if (expression === undefined || bytes === undefined) throw illegal('Validation Failed: 1: no settings to update;');
  const [settings, last] = withoutFinal(objectIn(bytes));
  const path = `/${encodeExpression(expression)}/_settings`;
  const body = last === undefined ? bytes : JSON.stringify(settings);
  const isMore = last === undefined || body !== '{}';
  const answered = isMore ? await transport.ask({ method: 'PUT', path, query: request.query, body }) : undefined;
  if (last === undefined || (answered !== undefined && answered.status !== 200))
    return replyOf(answered ?? ACKNOWLEDGED);
  await finals.put(expression, last, isSet(request.query['preserve_existing']));
  return replyOf(answered ?? ACKNOWLEDGED);
}

/** Answers the operations that change aliases: each index and alias that is named has to be the caller's to change. */
export async function changeAliases(
  context: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const { transport, names } = context;
  const body = bytes === undefined || bytes.length === 0 ? {} : objectIn(bytes);
  refuseFilters(request, body);
  await checkForeign(names, request, bytes);
  if (request.op === 'update_aliases') {
    for (const [kind, named] of aliasActions(body['actions'])) {
      await checkAll(names, request, named, kind === 'remove_index' ? 'indices:admin/delete' : undefined);
    }
    const answered = await transport.ask({ method: 'POST', path: '/_aliases', query: request.query, body: bytes });
    context.indices.forget();
    return replyOf(answered);
  }
  const index = request.path['index'] ?? textsIn(body['index']).join(',');
  const name = request.path['name'] ?? textsIn(body['alias']).join(',');
  await checkAll(
    names,
    request,
    [...index.split(','), ...name.split(',')].filter((it) => it !== ''),
  );
  const path = `/${encodeExpression(index)}/_alias/${encodeExpression(name)}`;
  const method = request.op === 'put_alias' ? 'PUT' : 'DELETE';
  const rest = without(body, 'index', 'alias');
  const sent = method === 'PUT' && Object.keys(rest).length > 0 ? JSON.stringify(rest) : undefined;
  const answered = await transport.ask({ method, path, query: request.query, body: sent });
  context.indices.forget();
  return replyOf(answered);
}

/** Answers the operations on templates: their mappings are translated as those of indices are. */
export async function putTemplate(
  context: Administration,
  request: EngineRequest,
  bytes: Uint8Array | undefined,
): Promise<EngineReply> {
  const { transport, product, names, semantic } = context;
  if (request.rights !== undefined)
    throw notOverCluster('writing a template with a key that may use some indices only');
  await checkForeign(names, request, bytes);
  const body = bytes === undefined ? {} : objectIn(bytes);
  const given = isObject(body['template']) ? body['template'] : {};
  const template: Json = {
    ...given,
    ...('mappings' in given ? { mappings: await semantic.checked(given['mappings']) } : {}),
  };
  const made = 'mappings' in template ? withVectorIndex(withMappings(template, product), product, true) : template;
  const sent = 'template' in body ? { ...body, template: withFinal(made) } : body;
  const kind = request.op === 'put_index_template' ? '_index_template' : '_component_template';
  const path = `/${kind}/${encodeURIComponent(request.path['name'] ?? '')}`;
  const answered = await transport.ask({ method: 'PUT', path, query: request.query, body: JSON.stringify(sent) });
  context.indices.forget();
  return replyOf(answered);
}

export async function getTemplates({ transport }: Administration, request: EngineRequest): Promise<EngineReply> {
  const [kind, list] =
    request.op === 'get_index_template'
      ? ['_index_template', 'index_templates']
      : ['_component_template', 'component_templates'];
  const { name } = request.path;
  const path = `/${kind}${name === undefined ? '' : `/${encodeExpression(name)}`}`;
  const answered = await transport.ask({ method: 'GET', path, query: request.query });
  if (answered.status !== 200 || !answered.body.includes('"sparrow"')) return replyOf(answered);
  const inner = list === 'index_templates' ? 'index_template' : 'component_template';
  const found = parseAnswer(answered.body) as Record<string, Record<string, unknown>[]>;
  const shown = (found[list] ?? []).map((it) => {
    const one = it[inner];
    if (!isObject(one) || !isObject(one['template'])) return it;
    return {
      ...it,
      [inner]: { ...one, template: templateShown(one['template']) },
    };
  });
  return { status: 200, body: Buffer.from(JSON.stringify({ ...found, [list]: shown })) };
}

/** A template as it was put: without mappings, if it has none but for what Sparrow keeps there. */
function templateShown(template: Json): Json {
  const mappings = fromCluster(template['mappings']);
  const shown = { ...finalShown(template), mappings };
  return isObject(mappings) && Object.keys(mappings).length === 0 ? without(shown, 'mappings') : shown;
}

/**
 * What a change of aliases does, and the names in each of its actions.
 *
 * @throws {EngineError} 400 for forms in which the cluster would find names that are not found here
 */
function aliasActions(given: unknown): readonly (readonly [string, readonly string[]])[] {
  if (!Array.isArray(given)) throw unparsable('[aliases] [actions] has to be an array');
  return given.map((it: unknown) => {
    const [action, second] = isObject(it) ? Object.entries(it) : [];
    const [kind, parts] = action ?? [];
    if (kind === undefined || second !== undefined || !isObject(parts)) {
      throw unparsable('[alias_action] has to be an object with one action');
    }
    const named = ['index', 'indices', 'alias', 'aliases'].flatMap((key) => {
      const value = parts[key];
      const texts = textsIn(value);
      if (value !== undefined && texts.length !== (Array.isArray(value) ? value.length : 1)) {
        throw unparsable(`[${kind}] [${key}] has to be a string or an array of strings`);
      }
      return texts;
    });
    // A name with a comma in it stands for several.
    return [kind, named.flatMap((name) => name.split(','))] as const;
  });
}

/** Names in a request that changes something: a restricted key names each, patterns only without Sparrow's own indices. */
async function checkAll(
  names: Names,
  request: EngineRequest,
  given: readonly string[],
  action?: string,
): Promise<void> {
  const pattern = given.find(isPattern);
  if (pattern !== undefined && (request.rights !== undefined || /^[.*_<]/.test(pattern))) {
    throw notOverCluster(`the pattern [${pattern}] in a change of aliases`, 'name the indices');
  }
  await names.check(
    request,
    given.filter((name) => !isPattern(name)),
    action,
  );
}

function withMappings(body: Json, product: Product): Json {
  return 'mappings' in body ? { ...body, mappings: toCluster(body['mappings'], product) } : body;
}

/**
 * Lets an index have graphs of vectors, which OpenSearch decides when it is made: a field may come later. A codec of the caller's
 * choice may not go with them.
 *
 * @param onlyWith whether only for mappings with such a field
 */
function withVectorIndex(body: Json, product: Product, onlyWith: boolean): Json {
  const settings = isObject(body['settings']) ? body['settings'] : {};
  const hasField = /"dense_vector"|"_sparrow"/u.test(JSON.stringify(body['mappings'] ?? null));
  const given = JSON.stringify(settings);
  if (!product.knn || (onlyWith && !hasField) || /"(?:index\.)?knn"/u.test(given)) return body;
  if (!hasField && given.includes('codec"')) return body;
  return { ...body, settings: { ...settings, 'index.knn': true } };
}

/** The filter of an alias may read other indices, and is not looked through. */
function refuseFilters({ rights }: EngineRequest, given: unknown): void {
  if (rights === undefined || !JSON.stringify(given ?? null).includes('"filter"')) return;
  throw notOverCluster('a filter of an alias, for a key that may use some indices only,');
}

/** Elasticsearch fetches documents of another index for a runtime field of type `lookup`. */
function refuseLookups({ rights }: EngineRequest, mapping: unknown): void {
  if (rights === undefined || !JSON.stringify(mapping ?? null).includes('"target_index"')) return;
  throw notOverCluster('a runtime field that looks into another index, for a key that may use some indices only,');
}

function objectIn(bytes: Uint8Array): Json {
  const value = parseRequest(decode(bytes));
  if (!isObject(value)) throw illegal('the body has to be an object');
  return value;
}

/** Names in a body; the cluster takes a number in a list for a name as well. */
function textsIn(value: unknown): readonly string[] {
  return (Array.isArray(value) ? (value as unknown[]) : [value]).flatMap((it) => textOf(it) ?? []);
}
