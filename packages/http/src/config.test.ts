import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

import { changedSettings, describeSettings, readConfig, usage, withoutSecrets } from './config.js';
import { modelDirectories } from './models.js';

function file(contents: string, ending = 'json'): string {
  const path = join(mkdtempSync(join(tmpdir(), 'sparrow-config-')), `sparrow.${ending}`);
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
    [['--prot', '1'], {}, 'unknown option --prot, did you mean --port?'],
    [[], { SPARROW_PROT: '1' }, 'unknown environment variable SPARROW_PROT, did you mean SPARROW_PORT?'],
    [['--config', file('{"ports":1}')], {}, 'sparrow.json, did you mean port?'],
    [['--config', file('{"prot":1}')], {}, 'sparrow.json, did you mean port?'],
    [['--config', file('{"constructor":1}')], {}, 'unknown setting [constructor]'],
    [['--config', file('maxBodyByte: 1\n', 'yaml')], {}, 'did you mean maxBodyBytes?'],
    [['--config', file('a: [', 'yml')], {}, 'cannot read the configuration file'],
    [['--tls-cert', 'a'], {}, '--tls-cert needs --tls-key'],
    [['--log-format', 'xml'], {}, '--log-format expects json or text, not [xml]'],
    [['--config', file('{')], {}, 'cannot read the configuration file'],
    [['--config', file('[]')], {}, 'one object with settings'],
    [['--port', '70000'], {}, '--port expects a port from 0 to 65535, not [70000]'],
    [['--port', '1.5'], {}, '--port expects a port'],
    [['--port'], {}, '--port needs a value'],
    [[], { SPARROW_PORT: 'x' }, 'SPARROW_PORT expects a port'],
    [[], { SPARROW_API_KEY: 'not a key' }, 'SPARROW_API_KEY expects base64'],
    [[], { SPARROW_API_KEY: WEAK_KEY }, 'the secret of 128 random bits'],
    [['--api-key', KEY], {}, 'unknown option --api-key'],
    [['--api-key-file', '/no/such/file'], {}, 'cannot read the file with the owner key /no/such/file'],
    [['--api-key-file', file('not a key')], {}, 'must hold base64'],
    [['--api-key-file', file(KEY)], { SPARROW_API_KEY: KEY }, 'leave one of them out'],
    [['--cluster-replace-owner-key', '--cluster', 'http://a'], {}, 'needs SPARROW_API_KEY or --api-key-file'],
    [['--cluster-replace-owner-key'], { SPARROW_API_KEY: KEY }, '--cluster-replace-owner-key needs --cluster'],
    [[], { SPARROW_PORT: 'tcp' }, 'SPARROW_PORT expects a port from 0 to 65535, not [tcp]'],
    [[], { SPARROW_SERVICE_PRT: '1' }, 'unknown environment variable SPARROW_SERVICE_PRT'],
    [[], { SPARROW_DATA_PROT: 'tcp://10.0.0.1:80' }, 'unknown environment variable SPARROW_DATA_PROT'],
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
    expect(changedSettings(config)).toEqual({ apiKey: '(set)', data: resolve('data') });
  });

  it('does not repeat a key that is wrong', () => {
    expect(() => readConfig([], { SPARROW_API_KEY: 'a secret' })).toThrow(/^(?!.*a secret)/);
    expect(() => readConfig([], { SPARROW_API_KEY_FILE: file('a secret') })).toThrow(/^(?!.*a secret)/);
  });

  it('takes the owner key from a file, as hosts hand over secrets', () => {
    const path = file(`${KEY}\n`);
    const { config } = readConfig([], { SPARROW_API_KEY_FILE: path });
    expect(config).toMatchObject({ apiKey: KEY, apiKeyFile: path });
    expect(JSON.stringify(withoutSecrets(config))).not.toContain(KEY);
  });

  it('leaves alone what Kubernetes says of services called sparrow', () => {
    // As the kubelet makes them for the Services `sparrow` (port `http`) and `sparrow-data`.
    const links = {
      SPARROW_SERVICE_HOST: '10.0.0.7',
      SPARROW_SERVICE_PORT: '9200',
      SPARROW_SERVICE_PORT_HTTP: '9200',
      SPARROW_PORT: 'tcp://10.0.0.7:9200',
      SPARROW_PORT_9200_TCP: 'tcp://10.0.0.7:9200',
      SPARROW_PORT_9200_TCP_PROTO: 'tcp',
      SPARROW_PORT_9200_TCP_PORT: '9200',
      SPARROW_PORT_9200_TCP_ADDR: '10.0.0.7',
      SPARROW_DATA_SERVICE_HOST: '10.0.0.8',
      SPARROW_DATA_SERVICE_PORT: '80',
      SPARROW_DATA_PORT: 'tcp://10.0.0.8:80',
      SPARROW_DATA_PORT_80_TCP: 'tcp://10.0.0.8:80',
    };
    expect(readConfig([], links).config).toEqual(readConfig([], {}).config);
    expect(readConfig([], { ...links, SPARROW_PORT: '9300' }).config.port).toBe(9300);
  });

  it('names a folder of models that is not there', () => {
    expect(() => modelDirectories('/no/such/folder')).toThrow('--models: cannot read the folder /no/such/folder');
  });

  it('explains every flag', () => {
    for (const { flag, help } of describeSettings()) {
      if (flag === undefined) continue;
      expect(usage()).toContain(`  ${flag} `);
      expect(usage()).toContain(help);
    }
  });

  it('may be YAML, with comments', () => {
    const path = file('# where it listens\nport: 1\nmetricsOpen: true # for the scraper\n', 'yaml');
    expect(readConfig(['--config', path], {}).config).toMatchObject({ port: 1, metricsOpen: true });
  });

  it('is the same from a file, the environment and flags, for every setting', () => {
    const other: Record<string, string> = {
      ...{ port: '1', host: 'localhost', data: '/d', models: '/m', repoPath: '/r', apiKey: KEY, allowRemote: 'true' },
      ...{ tlsCert: '/c', tlsKey: '/k', tlsClientCa: '/a', tlsClientAuth: 'optional', maxBodyBytes: '2', threads: '3' },
      ...{
        deployAtStart: 'false',
        productHeader: 'false',
        compression: 'false',
        shutdownSeconds: '4',
        cluster: 'https://c:9200',
        clusterCa: '/ca',
        clusterCredentials: '/cr',
        logLevel: 'warn',
      },
      ...{ logFormat: 'text', slowRequestSeconds: '6', metricsOpen: 'true', mcpWrite: 'true', auditLog: '/l' },
    };
    const settings = describeSettings();
    const given = Object.fromEntries(
      settings.flatMap(({ key, fallback }) => {
        const value = other[key] ?? fallback;
        return value === undefined ? [] : [[key, value]];
      }),
    );
    const variables = Object.fromEntries(settings.map(({ key, variable }) => [variable, given[key]]));
    const flags = settings.flatMap(({ key, flag }) =>
      flag === undefined || given[key] === undefined ? [] : [`${flag}=${given[key]}`],
    );
    const fromFile = readConfig(['--config', file(JSON.stringify(given))], {}).config;
    expect(readConfig([], variables).config).toEqual(fromFile);
    expect(readConfig(flags, { SPARROW_API_KEY: KEY }).config).toEqual(fromFile);
    expect(fromFile).toMatchObject({ port: 1, tlsClientAuth: 'optional', slowRequestSeconds: 6, compression: false });
  });

  it('stands in docs/operating.md, whole', () => {
    const page = readFileSync(new URL('../../../docs/operating.md', import.meta.url), 'utf8');
    const rows = describeSettings().map(
      ({ key, flag, variable, expects, help, fallback }) =>
        `| ${flag === undefined ? '' : `\`${flag}\``} | \`${variable}\` | \`${key}\` | ${expects} | ${fallback === undefined ? '' : `\`${fallback}\``} | ${help} |`,
    );
    const table = page.split('\n').filter((line) => /^\|[^|]*\| `SPARROW_/.test(line));
    expect(table.map((line) => line.replaceAll(/ +/g, ' '))).toEqual(rows.map((row) => row.replaceAll(/ +/g, ' ')));
  });
});
