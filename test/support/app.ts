import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { KeyStore, ScriptStore, type Services, createApp, createLogger } from '@sparrow-search/server';

import { FakeEngine } from './fake-engine.js';

/** The application over a fake engine, with an owner key. */
export async function fakeApp({
  ready = true,
  maxBodyBytes = 1000,
  compression = true,
  log = (() => undefined) as (line: string) => void,
  level = 'error' as 'error' | 'warn',
  mcpWrite = false,
} = {}) {
  const data = await mkdtemp(join(tmpdir(), 'sparrow-api-'));
  const engine = new FakeEngine();
  const keys = await KeyStore.open(data);
  const owner = await keys.createOwner(data, Date.now());
  const services: Services = {
    engine,
    keys,
    scripts: await ScriptStore.open(data),
    identity: { name: 'node', clusterName: 'sparrow', clusterUuid: 'uuid' },
    data,
    address: '127.0.0.1:9200',
  };
  const app = createApp({
    services: () => (ready ? services : undefined),
    config: { maxBodyBytes, productHeader: true, compression, mcpWrite },
    log: createLogger(level, log),
  });
  const authorization = `ApiKey ${owner.encoded}`;

  /** One request as the owner. `body` is sent as JSON unless it is a string. */
  const call = async (
    method: string,
    path: string,
    body?: object | string,
    headers: Record<string, string> = {},
  ): Promise<Response> =>
    app.request(path, {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  return { app, call, data, engine, keys, owner, authorization };
}
