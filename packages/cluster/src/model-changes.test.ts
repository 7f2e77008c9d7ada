// How servers keep out of each other's way while a model is changed, over a cluster that is one mapping.
import { type EngineRequest, EngineError } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import type { CopyPlan, Copying, Progress } from './copy.js';
import { refusal } from './errors.js';
import { InTurn } from './in-turn.js';
import { beginChange, cancelled, concluded, fill, stopped, told } from './model-changes.js';
import { paceOf } from './reindex.js';
import type { Wider } from './semantic-fields.js';
import { newTally } from './task-record.js';
import type { Working } from './tasks.js';
import type { Asked } from './transport.js';

const FIELD = { type: 'semantic_text', inference_id: 'old' };
const PLAN = { source: 'i', change: 'body' } as CopyPlan;
const DONE: Progress = { shards: [], tally: newTally(), failures: [] };
const REQUEST: EngineRequest = { op: 'change_model', path: { index: 'i' }, query: {} };

/** An index whose change is in some state, or that has none; `steps` are those that the native engine was asked for. */
function over(state: string | undefined, answerTo: (step: unknown) => object = () => ({ change: null })) {
  const own: Record<string, unknown> = { fields: { body: FIELD }, semantic: null };
  const set = (now: string | undefined, compare: object | null = null): void => {
    own['change'] = now === undefined ? undefined : { field: 'body', state: now, compare };
  };
  set(state);
  const steps: unknown[] = [];
  const mappings = { properties: { body: { type: 'text' } }, _meta: { sparrow: own } };
  const inTurn = new InTurn();
  const ask = ({ path, body = '{}' }: Asked): Promise<unknown> => {
    const { size } = JSON.parse(String(body)) as { size?: number };
    const answer = path.endsWith('_count')
      ? { count: 1 }
      : path.endsWith('shards')
        ? { shards: [] }
        : path.endsWith('_search')
          ? { hits: { hits: Array.from({ length: size ?? 0 }, () => ({ _source: {} })) } }
          : { i: { mappings } };
    return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify(answer)), text: false });
  };
  const work = {
    transport: { ask },
    vectors: { paths: () => Promise.resolve([]), of: () => Promise.resolve([]) },
    names: { check: () => Promise.resolve(), expression: () => Promise.resolve('i') },
    log: { warn: () => undefined },
    native: {
      execute: (_: EngineRequest, bytes: Uint8Array) => {
        const { step } = JSON.parse(Buffer.from(bytes).toString()) as { step: unknown };
        steps.push(step);
        const answer = { mapping: {}, state: null, ...answerTo(step) };
        return Promise.resolve({ status: 200, body: Buffer.from(JSON.stringify(answer)) });
      },
    },
    semantic: {
      of: () => Promise.resolve(undefined),
      turns: { alone: (_: string, run: () => Promise<unknown>) => inTurn.run(run) },
      untilKnown: () => Promise.resolve(),
      settle: (_: unknown, { state: semantic, change }: Wider) => {
        Object.assign(own, { semantic, change });
        return Promise.resolve();
      },
    },
  } as unknown as Working;
  return { work, steps, set };
}

describe('the change of a model', () => {
  it('is begun once by two servers at the same time', async () => {
    const beside = { number: 1, parameters: { ...FIELD, inference_id: 'new' } };
    const begun = { state: { body: { beside } }, change: { field: 'body', state: 'filling', compare: null } };
    const { work, steps } = over(undefined, () => begun);
    const kept: string[] = [];
    const filling = () => Promise.resolve(kept.length === 0 ? undefined : { task: 'sparrow:1', total: 1, filled: 0 });
    const keep = (_: CopyPlan, description: string) => Promise.resolve(kept.push(description));
    const body = Buffer.from('{"field":"body"}');
    const both = await Promise.allSettled([1, 2].map(() => beginChange(work, REQUEST, body, filling, keep)));
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    expect(both[1]).toMatchObject({ reason: { status: 409 } });
    expect(kept).toEqual(['change of the model of [i][body] to [new]']);
    expect(steps).toHaveLength(1);
  });

  it('goes as fast as it can where the pace has no end', () => {
    expect(['Infinity', '-1', '2.5'].map(paceOf)).toEqual([0, 0, 2.5]);
  });

  it.each(['ready', undefined])('is not filled any more when it is %s', async (state) => {
    const { work } = over(state);
    const context = { transport: work.transport, semantic: work.semantic } as Copying;
    const setDown = () => Promise.resolve(true);
    await expect(fill(work, context, PLAN, DONE, setDown)).rejects.toMatchObject({ status: 409 });
  });

  it('ends as it is where another server went on with it', async () => {
    const goesOn = () => undefined;
    expect(await concluded(over(undefined).work, PLAN, DONE, goesOn)).toMatchObject({ state: 'dropped' });
    const { work, steps, set } = over('filling', (step) => {
      if (JSON.stringify(step).includes('queries')) return { queries: [] };
      set('ready');
      throw refusal(409, 'status_exception', 'it is ready');
    });
    expect(await concluded(work, PLAN, DONE, goesOn)).toMatchObject({ field: 'body', state: 'ready' });
    expect(steps).toContainEqual({ fill: { lists: [] } });
    const other = over('filling', (step) => {
      if (JSON.stringify(step).includes('queries')) return { queries: [] };
      throw refusal(409, 'status_exception', 'something else');
    });
    await expect(concluded(other.work, PLAN, DONE, goesOn)).rejects.toBeInstanceOf(EngineError);
  });

  it.each([
    [refusal(400, 'query_shard_exception', 'field [body] holds the output of model [gone]'), true],
    [refusal(404, 'resource_not_found_exception', 'Could not find trained model [gone]'), true],
    [refusal(400, 'query_shard_exception', 'field [body] is of another kind'), false],
    [refusal(404, 'index_not_found_exception', 'no such index [i]'), false],
  ])('is compared only where something makes queries for the old vectors: %s', async (error, goesOn) => {
    const { work, steps, set } = over('filling', (step) =>
      JSON.stringify(step).includes('queries') ? { queries: ['q'] } : { change: { field: 'body', state: 'ready' } },
    );
    set('filling', { queries: ['q'] });
    const refuses = () => Promise.reject(error);
    Object.assign(work.semantic, { as: () => ({ of: refuses }) });
    const ended = concluded(work, PLAN, DONE, () => undefined);
    if (!goesOn) return expect(ended).rejects.toBe(error);
    expect(await ended).toMatchObject({ state: 'ready' });
    expect(steps).toContainEqual({ fill: { lists: [] } });
  });

  it('makes its queries of a few documents at a time', async () => {
    const { work, steps, set } = over('filling', (step) => {
      const asked = step as { readonly queries?: { readonly documents: readonly unknown[] } };
      return asked.queries === undefined ? { change: { field: 'body', state: 'ready' } } : { queries: [] };
    });
    set('filling', { sample: 45 });
    await concluded(work, PLAN, DONE, () => undefined);
    const sizes = steps.map((step) => (step as { queries?: { documents: unknown[] } }).queries?.documents.length);
    expect(sizes).toEqual([20, 20, 5, undefined]);
  });

  it.each([
    ['filling', 'cancelled', ['drop']],
    ['switched', 'switched', []],
    [undefined, 'cancelled', []],
  ])('that is %s, and cancelled, is %s', async (state, then, steps) => {
    const cluster = over(state);
    expect(await cancelled(cluster.work, PLAN)).toMatchObject({ field: 'body', state: then });
    expect(cluster.steps).toEqual(steps);
  });

  it('notes why it stopped only while it is filled', async () => {
    const [done, going] = [over('ready'), over('filling')];
    await stopped(done.work, PLAN, 'why');
    await stopped(going.work, PLAN, 'why');
    expect([done.steps, going.steps]).toEqual([[], [{ stop: { failure: 'why' } }]]);
  });

  it.each([
    [{ type: 'cluster_block_exception', reason: 'read-only' }, 'read-only'],
    [{ type: 'status_exception', reason: '[7] is bad' }, 'status_exception, the log of the server says more'],
    [
      { type: 'mapper_parsing_exception', reason: "Preview of field's value: 'secret'" },
      'mapper_parsing_exception, the log of the server says more',
    ],
  ])('tells of a failure %j no more than it may', (cause, sentence) => {
    expect(told({ index: 'i', id: '7', cause, status: 400 })).toBe(sentence);
  });
});
