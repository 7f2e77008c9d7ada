// Updates that may add their document, behind a default pipeline: one suite for every engine behind the routes.
import { randomBytes } from 'node:crypto';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ENGINES } from '../support/engines.js';
import type { RunningServer } from '../support/server.js';

describe.each(ENGINES)('updates behind a default pipeline over the $name engine', ({ start }) => {
  const run = randomBytes(4).toString('hex');
  const [plain, meaning, pipeline] = [`upserts-${run}-plain`, `upserts-${run}-meaning`, `upserts-${run}`];
  let server: RunningServer;

  async function ask(method: string, path: string, body?: unknown, status = 200): Promise<any> {
    const answer = await server.request(method, path, body);
    expect(answer.status, `${method} ${path}: ${answer.text}`).toBe(status);
    return answer.body;
  }
  const source = async (index: string, id: string): Promise<unknown> =>
    (await ask('GET', `/${index}/_doc/${id}`))._source;

  beforeAll(async () => {
    server = await start();
    const fail = { fail: { if: "ctx.text == 'bad'", message: 'bad text' } };
    const drop = { drop: { if: "ctx.text == 'none'" } };
    await ask('PUT', `/_ingest/pipeline/${pipeline}`, {
      processors: [fail, drop, { set: { field: 'seen', value: true } }],
    });
    const settings = { 'index.default_pipeline': pipeline };
    await ask('PUT', `/${plain}`, { settings });
    const text = { type: 'semantic_text', inference_id: '.sparse_encoder_model_2' };
    await ask('PUT', `/${meaning}`, { settings, mappings: { properties: { text } } });
  });
  afterAll(async () => {
    await server.request('DELETE', `/${plain},${meaning}`);
    await server.request('DELETE', `/_ingest/pipeline/${pipeline}`);
    await server.stop();
  });

  it.each([plain, meaning])('run the pipeline on what they may add, and change what is there (%s)', async (index) => {
    const update = (id: string, body: object, status = 200): Promise<any> =>
      ask('POST', `/${index}/_update/${id}?refresh=true`, body, status);
    const upsert = { doc: { n: 2 }, upsert: { text: 'a whale', n: 1 } };
    expect((await update('one', upsert, 201)).result).toBe('created');
    expect(await source(index, 'one')).toEqual({ ...upsert.upsert, seen: true });
    expect((await update('one', upsert)).result).toBe('updated');
    expect(await source(index, 'one')).toEqual({ ...upsert.upsert, seen: true, n: 2 });
    const whole = { doc: { text: 'a sparrow' }, doc_as_upsert: true };
    await update('two', whole, 201);
    expect(await source(index, 'two')).toEqual({ text: 'a sparrow', seen: true });
    await ask('PUT', `/${index}/_doc/three?pipeline=_none`, { n: 1 }, 201);
    // The pipeline runs before anybody knows whether there is a document.
    await update('three', whole);
    expect(await source(index, 'three')).toEqual({ n: 1, text: 'a sparrow', seen: true });
    expect((await update('three', whole)).result).toBe('noop');
    const refused = await server.request('POST', `/${index}/_update/four`, { doc: {}, upsert: { text: 'bad' } });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.body.error.reason).toContain('bad text');
    await ask('GET', `/${index}/_doc/four`, undefined, 404);
  });

  it.each([plain, meaning])('do so in bulk requests, each item by itself (%s)', async (index) => {
    await ask('PUT', `/${index}/_doc/there?pipeline=_none`, { n: 1 }, 201);
    const lines = [
      [{ update: { _id: 'new' } }, { doc: { n: 2 }, upsert: { text: 'a heron' } }],
      [{ update: { _id: 'there' } }, { doc: { text: 'a stork' }, doc_as_upsert: true }],
      [{ update: { _id: 'bad' } }, { doc: { text: 'bad' }, doc_as_upsert: true }],
      [{ update: { _id: 'dropped' } }, { doc: { text: 'none' }, doc_as_upsert: true }],
      [{ update: { _id: 'there' } }, { doc: { n: 3 } }],
    ];
    const body = lines.flat().map((line) => `${JSON.stringify(line)}\n`);
    const { items } = await ask('POST', `/${index}/_bulk?refresh=true`, body.join(''));
    const shown = items.map(({ update: { _id, status, result } }: any) => [_id, status, result]);
    expect(shown).toEqual([
      ['new', 201, 'created'],
      ['there', 200, 'updated'],
      ['bad', expect.any(Number), undefined],
      ['dropped', 200, 'noop'],
      ['there', 200, 'updated'],
    ]);
    expect(await source(index, 'new')).toEqual({ text: 'a heron', seen: true });
    expect(await source(index, 'there')).toEqual({ n: 3, text: 'a stork', seen: true });
  });
});
