import type { SearchEngine } from '@sparrow-search/engine';

import { type Json, isObject } from '../json.js';
import { pathsOfTypes } from '../mappings.js';
import { semanticIn } from '../passage-mappings.js';
import { ask } from './asking.js';
import { areSamePassages } from './payloads.js';
import { passagesOf, readPage, shardNumbers } from './transfer.js';

/** A cluster keeps 9 bits of a weight: a score is lower by this share of it at most. Sums are of 32-bit floats. */
const LOST = 2 ** -8 + 1e-4;

/** Tokens of a question that is made of a document: its heaviest. */
const TOKENS = 16;
const HITS = 10;

/** What was compared of an index. */
export interface Compared {
  /** Documents that were looked at on both sides. */
  readonly documents: number;
  /** Searches that were asked on both sides: each sampled document's own tokens. */
  readonly searches: number;
  /** What is not the same, in words. */
  readonly differences: readonly string[];
}

/**
 * Compares both sides of a move: how many documents there are, a sample of them word by word, and the scores of the best hits
 * for the sampled documents' own vectors, which no model has to make.
 */
export async function compare(
  from: SearchEngine,
  to: SearchEngine,
  index: string,
  mappings: Json,
  samples: number,
): Promise<Compared> {
  const differences: string[] = [];
  const [before, after] = await Promise.all([countOf(from, index), countOf(to, index)]);
  if (before !== after) differences.push(`there are ${String(after)} documents of ${String(before)}`);
  const fields = pathsOfTypes(mappings, new Set(['sparse_vector']));
  let [documents, searches] = [0, 0];
  const sample = await sampleOf(from, index, samples);
  const hasPassages = Object.keys(semanticIn(mappings)).length > 0;
  const [own, moved] = hasPassages
    ? await Promise.all([passagesOf(from, index, sample), passagesOf(to, index, sample)])
    : [[], []];
  for (const [place, { id, routing, source }] of sample.entries()) {
    documents += 1;
    if (!areSamePassages(own[place] ?? null, moved[place] ?? null))
      differences.push(`document [${id}] has other passages`);
    const query: Readonly<Record<string, string>> = routing === undefined ? {} : { routing };
    const other = await ask<{ found?: boolean; _source?: unknown }>(to, 'get_doc', {
      path: { index, id },
      query,
    }).catch(() => undefined);
    const document = JSON.parse(source ?? '{}') as unknown;
    if (canonical(other?._source) !== canonical(document)) {
      differences.push(`document [${id}] ${other?._source === undefined ? 'is missing' : 'is another one'}`);
      continue;
    }
    for (const field of fields) {
      const tokens = heaviest(at(document, field.split('.')));
      if (tokens === undefined) continue;
      searches += 1;
      const [ours, theirs] = await Promise.all([scores(from, index, field, tokens), scores(to, index, field, tokens)]);
      if (!areAlike(ours, theirs)) {
        differences.push(
          `the tokens of document [${id}] in [${field}] find ${shown(theirs)} in place of ${shown(ours)}`,
        );
      }
    }
  }
  return { documents, searches, differences };
}

async function countOf(engine: SearchEngine, index: string): Promise<number> {
  return (await ask<{ count: number }>(engine, 'count', { path: { index } })).count;
}

/** Documents from everywhere in an index: each is the first behind one of evenly spaced sequence numbers. */
async function sampleOf(engine: SearchEngine, index: string, samples: number): ReturnType<typeof readPage> {
  const shards = await shardNumbers(engine, index);
  const found = [];
  for (const shard of shards) {
    const preference: Readonly<Record<string, string>> =
      shards.length === 1 ? {} : { preference: `_shards:${String(shard)}` };
    const body = { size: 1, sort: [{ _seq_no: 'desc' }], track_total_hits: false, _source: false };
    const last = await ask<{ hits: { hits: { sort: number[] }[] } }>(engine, 'search', {
      path: { index },
      query: preference,
      body,
    });
    const most = last.hits.hits[0]?.sort[0];
    if (most === undefined) continue;
    const here = Math.ceil(samples / shards.length);
    for (let sample = 0; sample < here; sample += 1) {
      const after = Math.floor((most * sample) / here) - 1;
      found.push(...(await readPage(engine, index, shard, shards.length, after < 0 ? undefined : after, 1)));
    }
  }
  const seen = new Set<string>();
  return found.filter(({ id }) => !seen.has(id) && seen.add(id)).slice(0, samples);
}

async function scores(engine: SearchEngine, index: string, field: string, tokens: Json): Promise<readonly number[]> {
  const found = await ask<{ hits: { hits: { _score: number }[] } }>(engine, 'search', {
    path: { index },
    body: { query: { sparse_vector: { field, query_vector: tokens } }, size: HITS, _source: false },
  });
  return found.hits.hits.map(({ _score }) => _score);
}

/** If no document's score differs by more than a share, the best, the second and so on do not either. */
function areAlike(ours: readonly number[], theirs: readonly number[]): boolean {
  return (
    ours.length === theirs.length &&
    ours.every((score, place) => Math.abs(score - (theirs[place] ?? 0)) <= LOST * Math.max(score, theirs[place] ?? 0))
  );
}

function shown(all: readonly number[]): string {
  return `[${all.map((score) => score.toPrecision(6)).join(', ')}]`;
}

function heaviest(vector: unknown): Json | undefined {
  if (!isObject(vector)) return undefined;
  const weights = Object.entries(vector).filter((it): it is [string, number] => typeof it[1] === 'number' && it[1] > 0);
  if (weights.length === 0) return undefined;
  return Object.fromEntries(weights.sort((a, b) => b[1] - a[1]).slice(0, TOKENS));
}

function at(value: unknown, path: readonly string[]): unknown {
  if (path.length === 0) return value;
  if (!isObject(value)) return undefined;
  for (let names = 1; names <= path.length; names += 1) {
    const name = path.slice(0, names).join('.');
    if (name in value) return at(value[name], path.slice(names));
  }
  return undefined;
}

/** A value as a text that does not depend on the order of members. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}
