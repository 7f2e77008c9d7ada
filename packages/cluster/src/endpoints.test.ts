// What becomes of an inference endpoint that the cluster has and this server cannot run.
import { EngineError, type EngineRequest, type SearchEngine } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { Endpoints } from './endpoints.js';
import { refusal } from './errors.js';
import type { SharedState } from './shared-state.js';

/** A server that can run none, and the endpoint [lost] in the cluster, which some indices use. */
async function over(usedIn: readonly string[]) {
  let text = JSON.stringify({ format: 1, endpoints: { lost: { task_type: 'text_embedding', service: 'far' } } });
  const version = { seqNo: 1, term: 1 };
  const state = {
    version: () => Promise.resolve(version),
    read: () => Promise.resolve({ text, version }),
    write: (_: string, written: string) => {
      text = written;
      return Promise.resolve(version);
    },
  };
  const native = {
    execute: ({ op }: EngineRequest) =>
      op === 'get_inference'
        ? Promise.resolve({ status: 200, body: Buffer.from('{"endpoints":[]}') })
        : Promise.reject(refusal(404, 'resource_not_found_exception', 'there is no such model')),
  };
  const log = { info: () => undefined, warn: () => undefined };
  const endpoints = new Endpoints(
    native as unknown as SearchEngine,
    state as unknown as SharedState,
    log as never,
    () => Promise.resolve(usedIn),
  );
  const remove = async (query: Readonly<Record<string, string>>): Promise<any> => {
    const reply = await endpoints.change({ op: 'delete_inference', path: { inference_id: 'lost' }, query });
    return JSON.parse(Buffer.from(reply.body).toString());
  };
  return { endpoints, remove, isThere: () => text.includes('lost') };
}

describe('an endpoint that another server has just made', () => {
  it('is looked for before it is missing, and named if it cannot be used', async () => {
    const { endpoints } = await over([]);
    const use = async (id: string): Promise<string> => {
      const request = { op: 'infer', path: { inference_id: id }, query: {} } as const;
      const error: unknown = await endpoints.use(request).catch((thrown: unknown) => thrown);
      return error instanceof EngineError ? error.reason : String(error);
    };
    expect(await use('lost')).toMatch(/^Inference endpoint \[lost\] cannot be used on this server/);
    expect(await use('nobodys')).toBe('there is no such model');
  });
});

describe('the deletion of an endpoint that a server cannot run', () => {
  it('is refused while an index uses it, unless it is forced', async () => {
    const { remove, isThere } = await over(['i']);
    await expect(remove({})).rejects.toMatchObject({ status: 409 });
    expect(await remove({ dry_run: 'true' })).toMatchObject({ acknowledged: false, indexes: ['i'] });
    expect(isThere()).toBe(true);
    expect(await remove({ force: 'true' })).toMatchObject({ acknowledged: true });
    expect(isThere()).toBe(false);
  });

  it('only says what it would do in a dry run', async () => {
    const { remove, isThere } = await over([]);
    expect(await remove({ dry_run: '' })).toMatchObject({ acknowledged: false, indexes: [] });
    expect(isThere()).toBe(true);
    expect(await remove({})).toMatchObject({ acknowledged: true });
    expect(isThere()).toBe(false);
  });
});
