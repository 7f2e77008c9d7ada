// What a bulk request costs besides the cluster's own work: one question about the index, and no copy of the body.
import type { EngineRequest, SearchEngine } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { bulk } from './bulk.js';
import type { DynamicFields } from './dynamic-fields.js';
import type { FieldModels } from './field-models.js';
import type { FinalPipelines } from './final-pipelines.js';
import { Names } from './names.js';
import type { Given, Pipelines } from './pipelines.js';
import type { SemanticFields } from './semantic-fields.js';
import type { Asked, Transport } from './transport.js';
import type { VectorFields } from './vector-fields.js';

interface Sent extends Asked {
  readonly asked: 'settings' | 'bulk';
}

/** A cluster whose index names a pipeline, or none; it fails where there is no answer about the index. */
function over(settings: object | Error): { sent: Sent[]; run: (body: string, query?: object) => Promise<any> } {
  const sent: Sent[] = [];
  const transport = {
    json: (asked: Asked) => {
      sent.push({ ...asked, asked: 'settings' });
      return settings instanceof Error ? Promise.reject(settings) : Promise.resolve({ status: 200, body: settings });
    },
    ask: (asked: Asked) => {
      sent.push({ ...asked, asked: 'bulk' });
      return Promise.resolve({ status: 200, body: Buffer.from('{"errors":false,"items":[{}]}'), text: false });
    },
  } as unknown as Transport;
  const pipelines = {
    sync: () => Promise.resolve(),
    fills: () => Promise.resolve([]),
    run: (_: string, given: readonly Given[]) =>
      Promise.resolve(given.map((it) => ({ ...it, kind: 'document', source: '{"made":true}' }))),
  } as unknown as Pipelines;
  const vectors = { watched: () => Promise.resolve(undefined) } as unknown as VectorFields;
  const names = new Names({} as SearchEngine, transport);
  const semantic = { writtenTo: () => Promise.resolve(undefined) } as unknown as SemanticFields;
  const finals = { of: () => Promise.resolve(undefined) } as unknown as FinalPipelines;
  const dynamic = { prepare: () => Promise.resolve() } as unknown as DynamicFields;
  const context = { transport, pipelines, models: {} as FieldModels, names, vectors, semantic, finals, dynamic };
  const run = async (body: string, query = {}): Promise<any> => {
    const request: EngineRequest = { op: 'bulk', path: { index: 'a' }, query: { ...query } };
    return JSON.parse(Buffer.from((await bulk(context, request, Buffer.from(body))).body).toString());
  };
  return { sent, run };
}

const LINES = '{"index":{"_id":"ü"}}\n{"n":9007199254740993}\n';
const named = (pipeline: string) => ({ a: { settings: { 'index.default_pipeline': pipeline } } });

describe('a bulk request', () => {
  it('goes on as the bytes that it came as, after one question about its index', async () => {
    const { sent, run } = over({});
    await run(LINES);
    expect(sent.map(({ asked }) => asked)).toEqual(['settings', 'bulk']);
    expect(Buffer.from(sent[1]?.body as Uint8Array).toString()).toBe(LINES);
  });

  it('asks nothing about an index where it says itself which pipeline runs', async () => {
    const { sent, run } = over({});
    await run(LINES, { pipeline: '_none' });
    expect(sent.map(({ asked }) => asked)).toEqual(['bulk']);
  });

  it('runs the pipeline that the index names', async () => {
    const { sent, run } = over(named('p'));
    await run(LINES);
    expect(sent.at(-1)?.body).toBe('{"index":{"_index":"a","_id":"ü"}}\n{"made":true}\n');
  });

  it('fails with what kept the cluster from answering, and only where the answer is needed', async () => {
    const { sent, run } = over(new Error('away'));
    await expect(run(LINES)).rejects.toThrow('away');
    expect(sent.map(({ asked }) => asked)).toEqual(['settings']);
    await run('{"delete":{"_id":"1"}}\n');
    expect(sent.at(-1)?.asked).toBe('bulk');
  });

  it('is refused where it is no UTF-8, before anything is asked', async () => {
    const request: EngineRequest = { op: 'bulk', path: { index: 'a' }, query: {} };
    await expect(bulk({} as never, request, Uint8Array.from([0x7b, 0xff, 0x0a]))).rejects.toMatchObject({
      status: 400,
      reason: 'Invalid UTF-8 in the request body',
    });
  });
});
