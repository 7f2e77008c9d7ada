import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { extname, resolve } from 'node:path';

import { fileProblem } from '@sparrow-search/engine';
import { near } from '@sparrow-search/engine/diagnostics';
import type * as Yaml from 'yaml';

import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from './log.js';
import { decodeKey } from './security/key-store.js';
import { isStrong } from './security/secrets.js';
import { isServiceLink } from './service-links.js';

/** A setting that is not known or has an unusable value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The server's settings. Where two places name one, flags win over the environment, that over the file, that over the defaults. */
export interface Config {
  /** Port to listen on; 0 takes a free one. */
  readonly port: number;
  /** Address to listen on. Anything but loopback needs `allowRemote`. */
  readonly host: string;
  /** The data directory. */
  readonly data: string;
  /** A directory of model directories, besides the embedded models. */
  readonly models: string | undefined;
  /** The folder below which repositories of snapshots lie; `snapshots` beside the data directory when not given. */
  readonly repoPath: string | undefined;
  /** The owner key, `base64(id:secret)`, in place of a generated one. Never from a flag: other users can read those. */
  readonly apiKey: string | undefined;
  /** A file with the owner key, for hosts that hand over secrets as files; `apiKey` holds what it says. */
  readonly apiKeyFile: string | undefined;
  /** Accept connections from other machines although there is no TLS: keys then travel in the clear. */
  readonly allowRemote: boolean;
  /** Certificate chain of the server as PEM, its own first; with it the server speaks TLS. Needs `tlsKey`. */
  readonly tlsCert: string | undefined;
  /** The certificate's private key as PEM, without a passphrase. */
  readonly tlsKey: string | undefined;
  /** Certificates, as PEM, of those who sign clients' certificates; with it clients are asked for one. */
  readonly tlsClientCa: string | undefined;
  /** Whether a client without a certificate is turned away. Only with `tlsClientCa`. */
  readonly tlsClientAuth: ClientAuth;
  /** Longest request body in bytes. Raising it lets one request take that much memory, several times over. */
  readonly maxBodyBytes: number;
  /** Most API keys that there may be, with those that ended in the last seven days. */
  readonly maxApiKeys: number;
  /** Cores the engine uses, 0 for all. */
  readonly threads: number;
  /** Deploy the embedded sparse model at the first start; costs about 100 MB of memory. */
  readonly deployAtStart: boolean;
  /** Send `X-Elastic-Product`, without which the official clients refuse to talk. */
  readonly productHeader: boolean;
  /** Compress answers for clients that accept it. */
  readonly compression: boolean;
  /** Seconds that a shutdown waits for requests under way. */
  readonly shutdownSeconds: number;
  /** A file that gets a line of JSON for each request: who, what, from where, allowed or not. */
  readonly auditLog: string | undefined;
  /** What is logged: `debug` adds a line per request. */
  readonly logLevel: LogLevel;
  /** How a line of the log looks; text on a terminal and JSON elsewhere when not given. */
  readonly logFormat: LogFormat | undefined;
  /** Seconds from which on a request is logged as slow; 0 for never. */
  readonly slowRequestSeconds: number;
  /** Answer `GET /metrics` without a key. */
  readonly metricsOpen: boolean;
  /** Offer agents tools that write as well, over `POST /mcp`. What a key may do restricts them further. */
  readonly mcpWrite: boolean;
  /** Addresses of a cluster's nodes, separated by commas: documents are then there, and the data directory is a cache. */
  readonly cluster: string | undefined;
  /** Certificates, as PEM, of those who sign the nodes' certificates. Only with `cluster`. */
  readonly clusterCa: string | undefined;
  /** A file with `user:password`, or an encoded API key, of the cluster. Only with `cluster`. */
  readonly clusterCredentials: string | undefined;
  /** What makes the graphs of dense vectors in an OpenSearch cluster. Only with `cluster`. */
  readonly clusterVectorEngine: VectorEngine | undefined;
  /** Whether `apiKey` takes the place of another owner key that the servers of the cluster have. Only with `cluster`. */
  readonly clusterReplaceOwnerKey: boolean;
}

export const CLIENT_AUTH = ['required', 'optional'] as const;

/** Whether clients need a certificate. */
export type ClientAuth = (typeof CLIENT_AUTH)[number];

/** What an OpenSearch cluster can make graphs of dense vectors with. */
const VECTOR_ENGINES = ['lucene', 'faiss'] as const;
type VectorEngine = (typeof VECTOR_ENGINES)[number];

interface Setting<T> {
  readonly fallback: T;
  /** Reads a value of a flag, a variable or the file; undefined if it is unusable. */
  readonly parse: (value: unknown) => T | undefined;
  readonly expects: string;
  readonly help: string;
  /** Whether there is a flag for it. */
  readonly flag: boolean;
}

const KEY_FORM =
  'base64 of `id:secret`, the secret of 128 random bits or more (a command in docs/api-keys.md makes one)';

const SCHEMA: { readonly [K in keyof Config]: Setting<Config[K]> } = {
  port: setting(9200, integer(0, 65_535), 'a port from 0 to 65535', 'port to listen on, 0 for a free one'),
  host: setting('127.0.0.1', text, 'an address', 'address to listen on'),
  data: setting('./data', text, 'a directory', 'data directory'),
  models: setting<string | undefined>(undefined, text, 'a directory', 'directory with more models, one folder each'),
  repoPath: setting<string | undefined>(undefined, text, 'a directory', 'folder in which snapshot repositories may be'),
  apiKey: {
    ...setting<string | undefined>(undefined, apiKey, KEY_FORM, 'the owner key'),
    flag: false,
  },
  apiKeyFile: setting<string | undefined>(undefined, text, 'a file', 'file with the owner key, base64 of id:secret'),
  allowRemote: setting(false, boolean, 'true or false', 'listen on a non-loopback address without TLS'),
  tlsCert: setting<string | undefined>(
    undefined,
    text,
    'a file',
    'PEM file with the certificate chain; the server then speaks TLS',
  ),
  tlsKey: setting<string | undefined>(undefined, text, 'a file', 'PEM file with the certificate’s private key'),
  tlsClientCa: setting<string | undefined>(
    undefined,
    text,
    'a file',
    'PEM file of the authority that signs clients’ certificates',
  ),
  tlsClientAuth: setting<ClientAuth>(
    'required',
    oneOf(CLIENT_AUTH),
    CLIENT_AUTH.join(' or '),
    'whether clients need a certificate',
  ),
  maxBodyBytes: setting(
    100 * 1024 * 1024,
    integer(1, 2 ** 31 - 1),
    'a number of bytes',
    'largest request body, in bytes',
  ),
  maxApiKeys: setting(10_000, integer(1, 1_000_000), 'a number from 1 to 1000000', 'largest number of API keys'),
  threads: setting(0, integer(0, 1024), 'a number', 'number of cores to use, 0 for all'),
  deployAtStart: setting(true, boolean, 'true or false', 'deploy the embedded sparse model at the first start'),
  productHeader: setting(true, boolean, 'true or false', 'send X-Elastic-Product, which the official clients require'),
  compression: setting(true, boolean, 'true or false', 'compress answers for clients that accept it'),
  shutdownSeconds: setting(30, integer(0, 3600), 'a number of seconds', 'how long a shutdown waits for requests'),
  auditLog: setting<string | undefined>(
    undefined,
    text,
    'a file',
    'file that records who did what, one line per request',
  ),
  logLevel: setting<LogLevel>('info', oneOf(LOG_LEVELS), LOG_LEVELS.join(', '), 'lowest level that is logged'),
  logFormat: setting<LogFormat | undefined>(
    undefined,
    oneOf(LOG_FORMATS),
    LOG_FORMATS.join(' or '),
    'format of the log lines; if not given, text on a terminal and json elsewhere',
  ),
  slowRequestSeconds: setting(
    5,
    integer(0, 86_400),
    'a number of seconds',
    'log requests that take longer, 0 for none',
  ),
  metricsOpen: setting(false, boolean, 'true or false', 'answer GET /metrics without a key'),
  mcpWrite: setting(false, boolean, 'true or false', 'let agents write too, with tools of POST /mcp'),
  cluster: setting<string | undefined>(
    undefined,
    text,
    'addresses, separated by commas',
    'OpenSearch or Elasticsearch cluster to work over',
  ),
  clusterCa: setting<string | undefined>(
    undefined,
    text,
    'a file',
    'PEM file of the authority that signs the cluster’s certificates',
  ),
  clusterCredentials: setting<string | undefined>(
    undefined,
    text,
    'a file',
    'file with user:password or an API key for the cluster',
  ),
  clusterVectorEngine: setting<VectorEngine | undefined>(
    undefined,
    oneOf(VECTOR_ENGINES),
    VECTOR_ENGINES.join(' or '),
    'what makes the graphs of dense vectors in OpenSearch',
  ),
  clusterReplaceOwnerKey: setting(
    false,
    boolean,
    'true or false',
    'let the given owner key replace another one that the servers of the cluster have',
  ),
};

const KEYS = Object.keys(SCHEMA) as (keyof Config)[];

/** Variables of the project's own tools, which share the prefix. */
const FOREIGN_VARIABLES = new Set([
  ...['SPARROW_CONFIG', 'SPARROW_URL', 'SPARROW_TEST_TIER', 'SPARROW_REST_SUITES'],
  ...['SPARROW_SIMD', 'SPARROW_ONNXRUNTIME', 'SPARROW_TARBALLS', 'SPARROW_FOREIGN'],
  ...['SPARROW_TEST_CLUSTER', 'SPARROW_TEST_PEERS', 'SPARROW_TEST_PYTHON'],
]);

/** What the command line asked for. */
export interface Invocation {
  readonly config: Config;
  /** `help` and `version` print and end. */
  readonly command: 'serve' | 'help' | 'version';
}

/**
 * Reads all settings.
 *
 * @throws {ConfigError} for an unknown key in any place, an unusable value, or a host that would expose the server
 */
export function readConfig(args: readonly string[], environment: Readonly<NodeJS.ProcessEnv>): Invocation {
  const flags = readFlags(args);
  if (flags.command !== 'serve') return { command: flags.command, config: merge([]) };
  const file = flags.file ?? environment['SPARROW_CONFIG'];
  const layers = [...(file === undefined ? [] : [readFile(file)]), readEnvironment(environment), flags.values];
  const config = withKeyFromFile(merge(layers));
  checkTls(config);
  checkCluster(config);
  if (config.tlsCert === undefined && !config.allowRemote && !isLoopback(config.host)) {
    throw new ConfigError(
      `refusing to listen on ${config.host}: without TLS, keys and documents would cross the network in the clear. ` +
        'Pass --tls-cert and --tls-key, keep --host 127.0.0.1 behind a proxy with TLS, or pass --allow-remote.',
    );
  }
  return { command: 'serve', config };
}

/** @throws {ConfigError} for a file that cannot be read or holds no key, or a key that was given as well */
function withKeyFromFile(config: Config): Config {
  const { apiKeyFile: path } = config;
  if (path === undefined) return config;
  if (config.apiKey !== undefined) {
    throw new ConfigError('SPARROW_API_KEY and SPARROW_API_KEY_FILE both give the owner key: leave one of them out');
  }
  let held: string;
  try {
    held = readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new ConfigError(`cannot read the file with the owner key ${path}: ${fileProblem(cause)}`, { cause });
  }
  const key = apiKey(held);
  // What it holds is not shown: it may be a secret with a slip in it.
  if (key === undefined) throw new ConfigError(`the file with the owner key ${path} must hold ${KEY_FORM}`);
  return { ...config, apiKey: key };
}

/** @throws {ConfigError} for settings of TLS that say nothing without others */
function checkTls({ tlsCert, tlsKey, tlsClientCa }: Config): void {
  if (tlsCert !== undefined && tlsKey === undefined) throw new ConfigError('--tls-cert needs --tls-key');
  if (tlsCert === undefined && tlsKey !== undefined) throw new ConfigError('--tls-key needs --tls-cert');
  if (tlsCert === undefined && tlsClientCa !== undefined) {
    throw new ConfigError('--tls-client-ca needs --tls-cert and --tls-key');
  }
}

/** @throws {ConfigError} for settings of a cluster without a cluster */
function checkCluster(config: Config): void {
  const { cluster, clusterCa, clusterCredentials, clusterVectorEngine, clusterReplaceOwnerKey } = config;
  if (clusterReplaceOwnerKey && config.apiKey === undefined)
    throw new ConfigError('--cluster-replace-owner-key needs SPARROW_API_KEY or --api-key-file');
  if (cluster !== undefined) return;
  if (clusterCa !== undefined) throw new ConfigError('--cluster-ca needs --cluster');
  if (clusterCredentials !== undefined) throw new ConfigError('--cluster-credentials needs --cluster');
  if (clusterVectorEngine !== undefined) throw new ConfigError('--cluster-vector-engine needs --cluster');
  if (clusterReplaceOwnerKey) throw new ConfigError('--cluster-replace-owner-key needs --cluster');
}

/** Settings that name files and folders: from where the server is started. */
const PATHS: ReadonlySet<keyof Config> = new Set([
  'data',
  'models',
  'repoPath',
  'apiKeyFile',
  'auditLog',
  'tlsCert',
  'tlsKey',
  'tlsClientCa',
  'clusterCa',
  'clusterCredentials',
]);

/** The settings as they may be logged. */
export function withoutSecrets(config: Config): Record<string, unknown> {
  return { ...config, apiKey: config.apiKey === undefined ? undefined : '(set)' };
}

/** The settings that somebody has changed, as they may be logged: for a person, who would not find them among all others. */
export function changedSettings(config: Config): Record<string, unknown> {
  const all = Object.entries(withoutSecrets(config)) as [keyof Config, unknown][];
  return Object.fromEntries(all.filter(([key, value]) => value !== SCHEMA[key].fallback));
}

/** A setting as it is told to people. */
export interface Described {
  /** Its name in a file. */
  readonly key: string;
  /** Absent for what other users of the machine must not see. */
  readonly flag: string | undefined;
  readonly variable: string;
  readonly expects: string;
  readonly help: string;
  readonly fallback: string | undefined;
}

/** All settings, in the order in which they are explained. */
export function describeSettings(): readonly Described[] {
  return KEYS.map((key) => {
    const { flag, expects, help, fallback } = SCHEMA[key];
    return {
      key,
      flag: flag ? `--${kebab(key)}` : undefined,
      variable: variable(key),
      expects,
      help,
      fallback: fallback === undefined ? undefined : String(fallback),
    };
  });
}

export function usage(): string {
  const rows = describeSettings().flatMap(({ flag, help, fallback }) => {
    if (flag === undefined) return [];
    return [`  ${flag.padEnd(22)} ${help}${fallback === undefined ? '' : ` [${fallback}]`}`];
  });
  return [
    'Usage: sparrow [serve] [options]',
    '',
    ...rows,
    `  ${'--config FILE'.padEnd(22)} JSON or YAML file with the same settings in camelCase`,
    `  ${'--help'.padEnd(22)} print this help`,
    `  ${'--version'.padEnd(22)} print the version`,
    '',
    'Each option is also an environment variable: SPARROW_PORT for --port, and so on.',
    'SPARROW_API_KEY (base64 of id:secret, the secret of 128 random bits) sets the owner key; --api-key-file reads it.',
    '',
  ].join('\n');
}

type Values = ReadonlyMap<keyof Config, { readonly value: unknown; readonly from: string }>;

function merge(layers: readonly Values[]): Config {
  const entries = KEYS.map((key) => {
    const { fallback, parse, expects }: Setting<unknown> = SCHEMA[key];
    const given = layers.findLast((layer) => layer.has(key))?.get(key);
    if (given === undefined) return [key, key === 'data' ? resolve(String(fallback)) : fallback] as const;
    const value = parse(given.value);
    if (value === undefined) {
      // A secret is not shown, not even a wrong one.
      const found = key === 'apiKey' ? '' : `, not [${String(given.value)}]`;
      throw new ConfigError(`${given.from} expects ${expects}${found}`);
    }
    return [key, PATHS.has(key) && typeof value === 'string' ? resolve(value) : value] as const;
  });
  return Object.fromEntries(entries) as unknown as Config;
}

function readFlags(args: readonly string[]): { command: Invocation['command']; file?: string; values: Values } {
  const values = new Map<keyof Config, { value: unknown; from: string }>();
  const byFlag = new Map(KEYS.filter((key) => SCHEMA[key].flag).map((key) => [`--${kebab(key)}`, key]));
  let file: string | undefined;
  for (let at = 0; at < args.length; at += 1) {
    const [flag, inline] = splitOnce(args[at] ?? '', '=');
    if (flag === '--help' || flag === '-h') return { command: 'help', values };
    if (flag === '--version' || flag === '-v') return { command: 'version', values };
    const key = byFlag.get(flag);
    if (key === undefined && flag !== '--config') {
      throw new ConfigError(`unknown option ${flag}${meant(flag, [...byFlag.keys(), '--config'])} (see --help)`);
    }
    const next = args[at + 1];
    let value: unknown = inline;
    if (value === undefined && key !== undefined && typeof SCHEMA[key].fallback === 'boolean') {
      value = next === 'true' || next === 'false' ? next : true;
      if (value === next) at += 1;
    } else if (value === undefined) {
      if (next === undefined || next.startsWith('--')) throw new ConfigError(`${flag} needs a value`);
      value = next;
      at += 1;
    }
    if (key === undefined) file = String(value);
    else values.set(key, { value, from: flag });
  }
  return { command: 'serve', values, ...(file === undefined ? {} : { file }) };
}

function readEnvironment(environment: Readonly<NodeJS.ProcessEnv>): Values {
  const byName = new Map(KEYS.map((key) => [variable(key), key]));
  const values = new Map<keyof Config, { value: unknown; from: string }>();
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('SPARROW_') || FOREIGN_VARIABLES.has(name) || value === undefined) continue;
    if (isServiceLink(name, value)) continue;
    const key = byName.get(name);
    if (key === undefined) {
      throw new ConfigError(`unknown environment variable ${name}${meant(name, byName.keys())} (see --help)`);
    }
    if (value !== '') values.set(key, { value, from: name });
  }
  return values;
}

function readFile(path: string): Values {
  let parsed: unknown;
  try {
    parsed = parseFile(path, readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new ConfigError(`cannot read the configuration file ${path}: ${String(cause)}`, { cause });
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw new ConfigError(`${path} must hold one object with settings`);
  }
  return new Map(
    Object.entries(parsed).map(([name, value]) => {
      if (!Object.hasOwn(SCHEMA, name))
        throw new ConfigError(`unknown setting [${name}] in ${path}${meantSetting(name)}`);
      return [name as keyof Config, { value: value as unknown, from: `[${name}] in ${path}` }];
    }),
  );
}

/** YAML by its name, for comments; else JSON. */
function parseFile(path: string, text: string): unknown {
  if (!['.yaml', '.yml'].includes(extname(path))) return JSON.parse(text);
  // Only a start with such a file loads the parser.
  const { parse } = createRequire(import.meta.url)('yaml') as typeof Yaml;
  return parse(text, { maxAliasCount: 0 });
}

/** The name that may have been meant, as the end of a sentence. */
function meant(name: string, known: Iterable<string>): string {
  const [first] = near(name, known);
  return first === undefined ? '' : `, did you mean ${first}?`;
}

/** A hint at the setting that a name in a file was probably meant for: the one that `meant` gives for the name as an option. */
function meantSetting(name: string): string {
  return meant(
    `--${name}`,
    KEYS.map((key) => `--${key}`),
  ).replace('--', '');
}

/** Addresses that only this machine reaches. A host name may resolve to anything, so only `localhost` counts. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

function setting<T>(fallback: T, parse: Setting<T>['parse'], expects: string, help: string): Setting<T> {
  return { fallback, parse, expects, help, flag: true };
}

function integer(min: number, max: number) {
  return (value: unknown): number | undefined => {
    const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
    return typeof number === 'number' && Number.isInteger(number) && number >= min && number <= max
      ? number
      : undefined;
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function boolean(value: unknown): boolean | undefined {
  if (value === true || value === 'true' || value === '1') return true;
  return value === false || value === 'false' || value === '0' ? false : undefined;
}

function apiKey(value: unknown): string | undefined {
  const key = typeof value === 'string' ? decodeKey(value) : undefined;
  return key !== undefined && isStrong(key.secret) ? String(value) : undefined;
}

function oneOf<T extends string>(known: readonly T[]) {
  return (value: unknown): T | undefined => known.find((one) => one === value);
}

function kebab(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The environment variable of a setting. */
function variable(key: string): string {
  return `SPARROW_${kebab(key).replaceAll('-', '_').toUpperCase()}`;
}

function splitOnce(value: string, separator: string): readonly [string, string | undefined] {
  const at = value.indexOf(separator);
  return at < 0 ? [value, undefined] : [value.slice(0, at), value.slice(at + 1)];
}
