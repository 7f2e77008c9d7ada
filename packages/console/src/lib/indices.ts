// The indices that the key may see, with what they can be searched by.
import { type Field, type Properties, leaves } from '../search/fields';
import { optional } from './api';

export interface Index {
  readonly name: string;
  readonly fields: readonly Field[];
  readonly properties: Properties;
  /** Absent where the key may not see statistics. */
  readonly documents: number | undefined;
  readonly bytes: number | undefined;
  readonly health: string | undefined;
  /** When it was made, in milliseconds; absent where the key may not see statistics. */
  readonly created: number | undefined;
}

export interface Known {
  readonly indices: readonly Index[];
  /** Indices that the key may search and whose fields it may not see, where it sees those of none. */
  readonly hidden: readonly string[];
  /** Task types of inference endpoints by their ids. */
  readonly tasks: ReadonlyMap<string, string>;
  readonly models: { readonly sparse: readonly string[]; readonly dense: readonly string[] };
}

interface CatRow {
  readonly index: string;
  readonly health: string;
  readonly 'docs.count': string;
  readonly 'store.size': string;
  readonly 'creation.date': string;
}

interface ModelConfig {
  readonly model_id: string;
  readonly inference_config?: Readonly<Record<string, unknown>>;
}

export async function loadIndices(): Promise<Known> {
  const [mappings, rows, endpoints, models] = await Promise.all([
    optional<Record<string, { mappings: { properties?: Properties } }>>({}, 'GET', '/_mapping'),
    optional<CatRow[]>(
      [],
      'GET',
      '/_cat/indices?format=json&bytes=b&h=index,health,docs.count,store.size,creation.date',
    ),
    optional<{ endpoints: { inference_id: string; task_type: string }[] }>(
      { endpoints: [] },
      'GET',
      '/_inference/_all',
    ),
    optional<{ trained_model_configs: ModelConfig[] }>(
      { trained_model_configs: [] },
      'GET',
      '/_ml/trained_models?size=1000',
    ),
  ]);
  const statistics = new Map(rows.map((row) => [row.index, row]));
  const indices = Object.entries(mappings)
    .map(([name, { mappings: mapping }]): Index => {
      const properties = mapping.properties ?? {};
      const row = statistics.get(name);
      return {
        name,
        properties,
        fields: leaves(properties),
        documents: row === undefined ? undefined : Number(row['docs.count']),
        bytes: row === undefined ? undefined : Number(row['store.size']),
        health: row?.health,
        created: row === undefined ? undefined : Number(row['creation.date']),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    indices,
    hidden: indices.length > 0 ? [] : await named(),
    tasks: new Map(endpoints.endpoints.map(({ inference_id: id, task_type: task }) => [id, task])),
    models: {
      sparse: ofKind(models.trained_model_configs, 'text_expansion', '.sparse_encoder_model_2'),
      dense: ofKind(models.trained_model_configs, 'text_embedding', '.all-minilm-l6-v2'),
    },
  };
}

/** The names of the indices that the key may search; those of the server itself are left out. */
async function named(): Promise<string[]> {
  const none = { indices: [] };
  const found = await optional<{ readonly indices: readonly { name: string }[] }>(none, 'GET', '/_resolve/index/*');
  return found.indices.map(({ name }) => name).filter((name) => !name.startsWith('.'));
}

const LAST_SEARCHED = 'sparrow-index';

/** Which index somebody wants who names none: the one that was searched last in this browser, or else the one that was made last. */
export function usualIndex(indices: readonly Index[], storage: Storage = localStorage): Index | undefined {
  // An empty one answers nothing.
  const filled = indices.filter(({ documents }) => documents !== 0);
  const last = filled.find(({ name }) => name === storage.getItem(LAST_SEARCHED));
  return last ?? [...(filled.length === 0 ? indices : filled)].sort((a, b) => (b.created ?? 0) - (a.created ?? 0))[0];
}

/** Notes that an index is searched. */
export function keepUsual(name: string, storage: Storage = localStorage): void {
  try {
    storage.setItem(LAST_SEARCHED, name);
  } catch {
    // A browser may keep nothing.
  }
}

/** Models of a kind, the one that comes with the server first. */
function ofKind(configs: readonly ModelConfig[], kind: string, usual: string): string[] {
  const ids = configs
    .filter(({ inference_config: is }) => is !== undefined && kind in is)
    .map(({ model_id: id }) => id);
  return [...new Set([...(ids.includes(usual) || ids.length === 0 ? [usual] : []), ...ids])];
}
