/**
 * A second implementation of the shapes of answers, over trees: what the engine does over bytes is held against it.
 *
 * Lays out (`pretty`) and thins out (`filter_path`) an answer without turning its numbers into JavaScript's: scalars stay the
 * slices of text they came as.
 */
import { matchesGlob } from '@sparrow-search/engine';

/* eslint-disable no-restricted-imports -- what the server itself reads JSON by is no part of what its package offers */
import { type Json, parseJson } from '../../../packages/endpoints/src/json-text.js';
/* eslint-enable no-restricted-imports */

export { type Json, parseJson };

/** Without any space. */
export function compact(json: Json): string {
  switch (json.kind) {
    case 'scalar':
      return json.text;
    case 'array':
      return `[${json.items.map(compact).join(',')}]`;
    case 'object':
      return `{${json.entries.map(([key, value]) => `${key}:${compact(value)}`).join(',')}}`;
  }
}

/** The layout of `?pretty`: two spaces a level, ` : ` after keys, a newline at the end. */
export function pretty(json: Json): string {
  return `${indent(json, '')}\n`;
}

function indent(json: Json, margin: string): string {
  const inner = `${margin}  `;
  const lines = (items: readonly string[]): string => `\n${items.map((item) => inner + item).join(',\n')}\n${margin}`;
  switch (json.kind) {
    case 'scalar':
      return json.text;
    case 'array':
      return json.items.length === 0 ? '[ ]' : `[${lines(json.items.map((item) => indent(item, inner)))}]`;
    case 'object':
      return json.entries.length === 0
        ? '{ }'
        : `{${lines(json.entries.map(([key, value]) => `${key} : ${indent(value, inner)}`))}}`;
  }
}

/**
 * Keeps what `filter_path` names: comma-separated dot paths, with `*` inside a segment, `**` for any depth and a leading
 * `-` to leave something out. Arrays are looked through. Containers that become empty vanish.
 */
export function filterPath(json: Json, filter: string): Json {
  const paths = filter
    .split(',')
    .map((path) => path.trim())
    .filter((path) => path !== '');
  const excluded = compile(paths.filter((path) => path.startsWith('-')).map((path) => path.slice(1)));
  const included = compile(paths.filter((path) => !path.startsWith('-')));
  const kept = included.starts.length === 0 ? json : include(json, included, included.starts);
  const left = kept === undefined || excluded.starts.length === 0 ? kept : exclude(kept, excluded, excluded.starts);
  return left ?? { kind: 'object', entries: [] };
}

/**
 * Dot paths, one behind the other, each name in a place of its own; the place behind the last name of a path is empty. Any
 * number of paths is followed at once as a set of places, which never has more members than there are places.
 */
interface Paths {
  readonly names: readonly (string | undefined)[];
  readonly starts: readonly number[];
}

function compile(paths: readonly string[]): Paths {
  const names: (string | undefined)[] = [];
  const starts = paths.map((path) => {
    const start = names.length;
    names.push(...segments(path), undefined);
    return start;
  });
  return { names, starts };
}

/** The names of a dot path; a dot of a name itself is written behind a backslash. */
function segments(path: string): readonly string[] {
  return path.split(/(?<!\\)\./).map((segment) => segment.replaceAll('\\.', '.'));
}

function include(json: Json, paths: Paths, places: readonly number[]): Json | undefined {
  return walk(json, paths, places, (value, reached) =>
    reached.some((place) => paths.names[place] === undefined)
      ? value
      : reached.length === 0
        ? undefined
        : include(value, paths, reached),
  );
}

function exclude(json: Json, paths: Paths, places: readonly number[]): Json | undefined {
  return walk(json, paths, places, (value, reached) =>
    reached.some((place) => paths.names[place] === undefined)
      ? undefined
      : reached.length === 0
        ? value
        : exclude(value, paths, reached),
  );
}

/** Rebuilds an object with `decide` on each value, given the places that its key leads to. */
function walk(
  json: Json,
  paths: Paths,
  places: readonly number[],
  decide: (value: Json, reached: readonly number[]) => Json | undefined,
): Json | undefined {
  switch (json.kind) {
    case 'scalar':
      // A path that leads through a scalar names nothing in it.
      return decide(json, []);
    case 'array': {
      const items = json.items.map((item) => walk(item, paths, places, decide)).filter((item) => item !== undefined);
      return items.length === 0 ? undefined : { kind: 'array', items };
    }
    case 'object': {
      const entries = json.entries.flatMap(([key, value]) => {
        const decided = decide(value, advance(paths, places, JSON.parse(key) as string));
        return decided === undefined ? [] : [[key, decided] as const];
      });
      return entries.length === 0 ? undefined : { kind: 'object', entries };
    }
  }
}

/** The places behind those names that match `key`; `**` matches it and stays where it is. */
function advance({ names }: Paths, places: readonly number[], key: string): readonly number[] {
  const reached = new Set<number>();
  for (const start of places) {
    let place = start;
    for (; names[place] === '**'; place += 1) reached.add(place);
    const name = names[place];
    // At the end of a path a `**` stands for everything below.
    if (name === undefined ? place > start : matchesGlob(name, key))
      reached.add(name === undefined ? place : place + 1);
  }
  return [...reached];
}
