import { shapeAnswer } from './shape.js';

/** How long the parts of a search took, in milliseconds. They come one after another, in the order in which they stand here. */
export interface Phases {
  /** For each model that read texts of the search: from its tokens to its vectors, with the time in its queue. */
  readonly models: readonly ModelPhase[];
  /** Finding hits: all lists of all indices together. */
  readonly search: number;
  /** Combining the lists. */
  readonly fuse: number;
  /** Reading the documents of the hits. */
  readonly fetch: number;
  /** Marking words and passages in them. */
  readonly highlight: number;
  /** Explaining scores. */
  readonly explain: number;
}

/** What a model did for a search. */
export interface ModelPhase {
  /** The model. */
  readonly id: string;
  /** How many texts it was given. */
  readonly texts: number;
  /** How many of the texts it had read before. */
  readonly cached: number;
  /** Milliseconds, in all. */
  readonly took: number;
  /** Milliseconds of it that the texts waited. */
  readonly queued: number;
}

/** What the engine says in a profile. */
interface Profile {
  readonly phases?: Readonly<Record<string, number>>;
  readonly models?: readonly Readonly<Record<string, number | string>>[];
}

const NANOS_OF_MS = 1e6;

/**
 * A search body that also asks for a profile; undefined if the body sets `profile` itself, or if it is not a JSON object. `profile` is added
 * at the end, so that errors name the same places as in the original.
 */
export function askingForProfile(body: Uint8Array | undefined): Uint8Array | undefined {
  const text = body === undefined ? '{}' : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString();
  try {
    const asked: unknown = JSON.parse(text);
    if (typeof asked !== 'object' || asked === null || Array.isArray(asked) || 'profile' in asked) return undefined;
    const separator = Object.keys(asked).length === 0 ? '' : ',';
    return Buffer.from(`${text.slice(0, text.lastIndexOf('}'))}${separator}"profile":true}`);
  } catch {
    // The engine reports why a body cannot be read.
    return undefined;
  }
}

/** The times of a search's parts, read from the profile in its response; undefined if the response has no profile. */
export async function phasesIn(answer: Uint8Array): Promise<Phases | undefined> {
  const part = await shapeAnswer(answer, { filter_path: 'profile.phases,profile.models' });
  if (typeof part === 'string') return undefined;
  const { profile } = JSON.parse(new TextDecoder().decode(part)) as { readonly profile?: Profile };
  if (profile?.phases === undefined) return undefined;
  const { phases, models = [] } = profile;
  const ms = (name: string): number => (phases[`${name}_in_nanos`] ?? 0) / NANOS_OF_MS;
  return {
    models: models.map(modelPhase),
    search: ms('search'),
    fuse: ms('fuse'),
    fetch: ms('fetch'),
    highlight: ms('highlight'),
    explain: ms('explain'),
  };
}

/** The response without its profile, for a client that did not ask for one. */
export async function withoutProfile(answer: Uint8Array): Promise<Uint8Array> {
  const rest = await shapeAnswer(answer, { filter_path: '-profile' });
  return typeof rest === 'string' ? answer : rest;
}

function modelPhase(said: Readonly<Record<string, number | string>>): ModelPhase {
  const number = (name: string): number => Number(said[name] ?? 0);
  const ms = (name: string): number => number(`${name}_in_nanos`) / NANOS_OF_MS;
  const queued = ms('queue');
  return {
    id: String(said['model_id']),
    texts: number('texts'),
    cached: number('cache_hits'),
    took: ms('tokenize') + queued + ms('infer'),
    queued,
  };
}
