import { matchesGlob } from '@sparrow-search/engine';

import { type Json, isObject, parseAnswer, textOf, without } from './json.js';
import { META, ownMeta } from './mappings.js';
import { IF_THERE, type KnownIndices, type Mappings, ONLY_OWN } from './known-indices.js';
import { encodeExpression } from './names.js';
import { passedOn } from './replies.js';
import type { Transport } from './transport.js';
import type { Turns } from './turns.js';

/** The setting, and the name under which a mapping keeps its value: a cluster that had the setting would run the pipeline itself. */
const NAME = 'final_pipeline';

/** The value by which an index says that it has none, also where a template has one. */
const NONE = '_none';

/** How long the servers believe what they know of it, and a little more. */
const UNTIL_KNOWN_MS = 5_500;

/**
 * Settings without the final pipeline, and what they say about it.
 *
 * @returns undefined for the pipeline where they say nothing, and `_none` where there is to be none
 */
export function withoutFinal(settings: unknown): readonly [settings: unknown, pipeline: string | undefined] {
  if (!isObject(settings)) return [settings, undefined];
  let found: unknown;
  const left = Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) => {
      if (name === NAME || name === `index.${NAME}`) {
        found = value ?? NONE;
        return [];
      }
      if (name !== 'index' && name !== 'settings') return [[name, value]];
      const [rest, inside] = withoutFinal(value);
      found ??= inside;
      return isObject(rest) && Object.keys(rest).length === 0 ? [] : [[name, rest]];
    }),
  );
  return [left, textOf(found)];
}

/** The body that makes an index, or a template, with the final pipeline where Sparrow keeps it. */
export function withFinal(body: Json): Json {
  const [settings, pipeline] = withoutFinal(body['settings']);
  if (pipeline === undefined) return body;
  return { ...body, settings, mappings: named(body['mappings'], pipeline) };
}

/** The body of an index or a template as its caller put it: with the final pipeline among its settings. */
export function finalShown(body: Json): Json {
  const pipeline = finalIn(body['mappings']);
  return pipeline === undefined ? body : { ...body, settings: shown(body['settings'], pipeline) };
}

function shown(settings: unknown, pipeline: string): Json {
  const all = isObject(settings) ? settings : {};
  const isFlat = Object.keys(all).some((name) => name.startsWith('index.'));
  if (isFlat) return { ...all, [`index.${NAME}`]: pipeline };
  return { ...all, index: { ...(isObject(all['index']) ? all['index'] : {}), [NAME]: pipeline } };
}

function named(mapping: unknown, pipeline: string | undefined): Json {
  const given = isObject(mapping) ? mapping : {};
  const own = without(ownMeta(given), NAME);
  const meta = isObject(given['_meta']) ? given['_meta'] : {};
  return { ...given, _meta: { ...meta, [META]: pipeline === undefined ? own : { ...own, [NAME]: pipeline } } };
}

function finalIn(mapping: unknown): string | undefined {
  return textOf(ownMeta(mapping)[NAME]);
}

/** Which pipeline runs last on what is written to an index. */
export class FinalPipelines {
  readonly #transport: Transport;
  readonly #indices: KnownIndices;
  readonly #turns: Turns;

  constructor(transport: Transport, indices: KnownIndices, turns: Turns) {
    this.#transport = transport;
    this.#indices = indices;
    this.#turns = turns;
  }

  /** That of the index that a name writes to: one that is there, or one that a template makes. */
  async of(name: string): Promise<string | undefined> {
    return given(finalIn((await this.#indices.written(name)).mapping));
  }

  /** Whether any of the indices has one. */
  async hasAny(expression: string): Promise<boolean> {
    return finalsIn(await this.#indices.own(expression)).some(([, pipeline]) => pipeline !== NONE);
  }

  /**
   * Gives indices another one, and waits until all servers know it.
   *
   * @param pipeline `_none` for none
   */
  async put(expression: string, pipeline: string, keeps = false): Promise<void> {
    const path = `/${encodeExpression(expression)}/_mapping`;
    const answered = await this.#transport.ask({ method: 'GET', path, repeatable: true });
    if (answered.status !== 200) throw passedOn(answered);
    for (const index of Object.keys(parseAnswer(answered.body) as Json)) {
      await this.#turns.alone(index, async () => {
        const one = `/${encodeURIComponent(index)}/_mapping`;
        const [[, mapping] = []] = await this.#indices.read(index);
        if (keeps && finalIn(mapping) !== undefined) return;
        const { _meta } = named(mapping, given(pipeline));
        const put = await this.#transport.ask({ method: 'PUT', path: one, body: JSON.stringify({ _meta }) });
        if (put.status !== 200) throw passedOn(put);
      });
    }
    this.#indices.forget();
    await new Promise((resolve) => setTimeout(resolve, UNTIL_KNOWN_MS));
  }

  /**
   * Settings of indices as they were put.
   *
   * @param found the cluster's answer: settings by the names of indices
   * @param wanted patterns of the settings that the request asks for
   */
  async shown(
    expression: string,
    query: Readonly<Record<string, string>>,
    found: Json,
    wanted: string | undefined,
  ): Promise<Json> {
    const isWanted = (wanted ?? '*').split(',').some((it) => matchesGlob(it === '_all' ? '*' : it, `index.${NAME}`));
    const expand = query['expand_wildcards'];
    const where = expand === undefined ? IF_THERE : { ...IF_THERE, expand_wildcards: expand };
    const all = isWanted ? await this.#indices.read(expression, { ...where, ...ONLY_OWN }) : [];
    const changed = finalsIn(all).map(([index, pipeline]) => {
      const one = isObject(found[index]) ? found[index] : {};
      const settings = one['settings'];
      const isFlat = query['flat_settings'] === 'true' || query['flat_settings'] === '';
      const before = isFlat && Object.keys(isObject(settings) ? settings : {}).length === 0;
      return [index, { ...one, settings: before ? { [`index.${NAME}`]: pipeline } : shown(settings, pipeline) }];
    });
    return { ...found, ...(Object.fromEntries(changed) as Json) };
  }
}

/** Those of the indices that have one, or say that they have none. */
function finalsIn(all: Mappings): readonly (readonly [index: string, pipeline: string])[] {
  return all.flatMap(([index, mapping]) => {
    const pipeline = finalIn(mapping);
    return pipeline === undefined ? [] : [[index, pipeline] as const];
  });
}

function given(pipeline: string | undefined): string | undefined {
  return pipeline === NONE || pipeline === '' ? undefined : pipeline;
}
