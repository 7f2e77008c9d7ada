import type { Operation } from '../operations.js';
import type { SearchEngine } from '../search-engine.js';
import { near } from './near.js';

/** Operations whose bodies hold mappings. */
const MAPPING: ReadonlySet<Operation> = new Set([
  ...(['create_index', 'put_mapping', 'put_template', 'put_index_template', 'put_component_template'] as const),
]);

/** Whether the body of an operation may name endpoints. */
export function holdsMappings(op: Operation): boolean {
  return MAPPING.has(op);
}

/** Members of a `semantic_text` field that name what encodes its texts. */
const NAMING = ['inference_id', 'search_inference_id'] as const;

/** Bytes of a mapping beyond which nobody looks for misspelt names: reading it again would hold the event loop. */
const MOST_BYTES = 256 * 1024;

/** Names that are warned of, and the longest for which one is looked for that may have been meant. */
const MOST_WARNED = 8;
const LONGEST_NAME = 200;

/** Models of which the list shows all: more than any server has. */
const ALL = { size: '10000' };

/**
 * Sentences about fields of a mapping that name an endpoint, a deployment or a model that is not there. As in Elasticsearch, a mapping
 * may name one that is made later; a name that is misspelt would come out with the first document.
 *
 * @param maySee whether the caller may list the endpoints, so that one can be named that may have been meant
 */
export async function unknownEndpoints(
  engine: SearchEngine,
  body: Uint8Array | undefined,
  maySee: boolean,
): Promise<readonly string[]> {
  if (body === undefined || body.length > MOST_BYTES) return [];
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.includes('inference_id')) return [];
  let named: readonly [field: string, name: string][];
  let known: ReadonlySet<string>;
  try {
    named = namedIn(JSON.parse(bytes.toString()), '');
    if (named.length === 0) return [];
    known = await knownNames(engine);
  } catch {
    // The mapping is in force already. It is answered for even if its names cannot be checked.
    return [];
  }
  const unknown = named.filter(([, name]) => !known.has(name)).slice(0, MOST_WARNED);
  return unknown.map(([field, name]) => {
    const [meant] = maySee && name.length <= LONGEST_NAME ? near(name, known) : [];
    const hint = meant === undefined ? '' : `; did you mean [${meant}]?`;
    return `the field [${field}] names the inference endpoint [${name}], which does not exist: its texts are refused until it does${hint}`;
  });
}

/** Fields with the names of what encodes their texts. */
function namedIn(value: unknown, key: string): [field: string, name: string][] {
  if (typeof value !== 'object' || value === null) return [];
  const members = value as Readonly<Record<string, unknown>>;
  if (members['type'] === 'semantic_text') {
    const names = NAMING.map((member) => members[member]).filter((name) => typeof name === 'string');
    return [...new Set(names)].map((name) => [key, name]);
  }
  return Object.entries(members).flatMap(([name, inner]) => namedIn(inner, name));
}

/** Ids of everything that a field may name. */
async function knownNames(engine: SearchEngine): Promise<ReadonlySet<string>> {
  const ask = async (op: Operation, query: Readonly<Record<string, string>>): Promise<unknown> =>
    JSON.parse(new TextDecoder().decode((await engine.execute({ op, path: {}, query })).body));
  const [inference, models, stats] = (await Promise.all([
    ask('get_inference', {}),
    ask('get_trained_models', ALL),
    ask('trained_model_stats', ALL),
  ])) as [
    { readonly endpoints?: readonly { readonly inference_id: string }[] },
    {
      readonly trained_model_configs?: readonly {
        readonly model_id: string;
        readonly metadata?: { readonly aliases?: readonly string[] };
      }[];
    },
    { readonly trained_model_stats?: readonly { readonly deployment_stats?: { readonly deployment_id: string } }[] },
  ];
  return new Set([
    ...(inference.endpoints ?? []).map(({ inference_id: id }) => id),
    ...(models.trained_model_configs ?? []).flatMap(({ model_id: id, metadata }) => [id, ...(metadata?.aliases ?? [])]),
    ...(stats.trained_model_stats ?? []).flatMap(({ deployment_stats: one }) =>
      one === undefined ? [] : [one.deployment_id],
    ),
  ]);
}
