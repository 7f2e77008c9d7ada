import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

import { readConfig, usage, withoutSecrets } from './config.js';
import { modelDirectories } from './models.js';

function file(contents: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sparrow-config-')), 'sparrow.json');
  writeFileSync(path, contents);
  return path;
}

const KEY = Buffer.from('id:5up4mX9rQ2vT7yB1nK8wLz').toString('base64');
const WEAK_KEY = Buffer.from('id:a secret of mine').toString('base64');

describe('the configuration', () => {
  it('has the documented defaults', () => {
    const { config } = readConfig([], {});
    expect(config).toMatchObject({ port: 9200, host: '127.0.0.1', data: resolve('data'), models: undefined });
  });

  it('lets flags win over the environment, that over the file, that over the defaults', () => {
    const path = file('{"port":1,"threads":1,"shutdownSeconds":1}');
    const { config } = readConfig(['--config', path, '--port', '3'], { SPARROW_PORT: '2', SPARROW_THREADS: '2' });
    expect(config).toMatchObject({ port: 3, threads: 2, shutdownSeconds: 1, maxBodyBytes: 104_857_600 });
  });

  it('reads every documented option from a flag and from the environment', () => {
    const flags = readConfig(['--port=1', '--host=localhost', '--data=/d', '--models', '/m'], {}).config;
    const variables = readConfig([], {
      SPARROW_PORT: '1',
      SPARROW_HOST: 'localhost',
      SPARROW_DATA: '/d',
      SPARROW_MODELS: '/m',
    }).config;
    expect(flags).toEqual(variables);
    expect(flags).toMatchObject({ port: 1, host: 'localhost', data: '/d', models: '/m' });
  });

  it.each([
    [['--prot', '1'], {}, 'unknown option --prot'],
    [[], { SPARROW_PROT: '1' }, 'unknown environment variable SPARROW_PROT'],
    [['--config', file('{"prot":1}')], {}, 'unknown setting [prot]'],
    [['--config', file('{')], {}, 'cannot read the configuration file'],
    [['--config', file('[]')], {}, 'one JSON object'],
    [['--port', '70000'], {}, '--port expects a port from 0 to 65535, not [70000]'],
    [['--port', '1.5'], {}, '--port expects a port'],
    [['--port'], {}, '--port needs a value'],
    [[], { SPARROW_PORT: 'x' }, 'SPARROW_PORT expects a port'],
    [[], { SPARROW_API_KEY: 'not a key' }, 'SPARROW_API_KEY expects base64'],
    [[], { SPARROW_API_KEY: WEAK_KEY }, 'the secret of 128 random bits'],
    [['--api-key', KEY], {}, 'unknown option --api-key'],
  ] as const)('refuses %j with %j', (args, environment, sentence) => {
    expect(() => readConfig(args, environment)).toThrow(sentence);
  });

  it.each(['0.0.0.0', '::', '192.168.1.2', 'example.org'])('refuses to listen on %s without leave', (host) => {
    expect(() => readConfig(['--host', host], {})).toThrow('--allow-remote');
    expect(readConfig(['--host', host, '--allow-remote'], {}).config.host).toBe(host);
  });

  it.each(['127.0.0.1', '127.9.9.9', '::1', 'localhost'])('listens on %s', (host) => {
    expect(readConfig(['--host', host], {}).config.host).toBe(host);
  });

  it('is shown without secrets', () => {
    const { config } = readConfig([], { SPARROW_API_KEY: KEY });
    expect(config.apiKey).toBe(KEY);
    expect(JSON.stringify(withoutSecrets(config))).not.toContain(KEY);
  });

  it('does not repeat a key that is wrong', () => {
    expect(() => readConfig([], { SPARROW_API_KEY: 'a secret' })).toThrow(/^(?!.*a secret)/);
  });

  it('names a folder of models that is not there', () => {
    expect(() => modelDirectories('/no/such/folder')).toThrow('--models: cannot read the folder /no/such/folder');
  });

  it('explains every flag', () => {
    for (const flag of ['--port', '--host', '--data', '--models', '--allow-remote']) expect(usage()).toContain(flag);
  });
});
