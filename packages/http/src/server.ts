import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { UnusablePathError } from '@sparrow-search/endpoints';
import { type SearchEngine, NativeSearchEngine, embeddedModels, fileProblem } from '@sparrow-search/engine';

import { createApp } from './app.js';
import { makeApplication } from './application.js';
import { type Config, ConfigError, changedSettings, withoutSecrets } from './config.js';
import { closeSearch } from './documentation-search.js';
import { Drain } from './exchange/drain.js';
import { malformedRequests, refuseExpectation } from './exchange/malformed.js';
import { ParsedRequest, Pipelined } from './exchange/pipelined.js';
import { Strangers } from './exchange/strangers.js';
import { listener } from './exchange/through-hono.js';
import { readIdentity } from './identity.js';
import { Instruments } from './instruments/instruments.js';
import type { Logger } from './log.js';
import { modelDirectories } from './models.js';
import { makePrivate } from './private-data.js';
import { ScriptStore } from './search-templates/script-store.js';
import { AuditLog } from './security/audit.js';
import { type IssuedKey, KeyStore, decodeKey } from './security/key-store.js';
import type { Services } from './services.js';
import { sharedText } from './stored-text.js';
import { TaskHistory } from './tasks/task-history.js';
import { createTlsServer } from './tls/listener.js';

/** Idle connections are kept longer than any client keeps them, so that none is closed under a request. */
const KEEP_ALIVE_MS = 75_000;

/** How long the headers of a request may take to arrive, and how often that is looked at. */
const HEADERS_MS = 20_000;
const LOOK_MS = 5_000;

/**
 * Connections that wait to be taken. A client beyond that believes to be connected and sends its request, which comes again
 * seconds later: Node's own 511 made the slowest of a thousand clients that began together wait for four.
 */
const BACKLOG = 8192;

/** Most connections at once; one more is closed at once. Each costs memory before it has asked for anything. */
const MAX_CONNECTIONS = 8192;

/**
 * The connections among these on which nobody has shown a key: of one address, as behind it may be a proxy with all clients that have one,
 * and of all together, so that there is room for those who have.
 */
const STRANGERS = { ofAddress: 1024, together: 7168 };

/** How long a request may take to arrive: the longest body over a slow line, but not for ever. */
const REQUEST_MS = 600_000;

/** Longest line and headers of a request together. */
const MAX_HEADER_BYTES = 16 * 1024;

/** A server that listens. */
export interface RunningServer {
  /** Base URL, with the port that was really taken. */
  readonly url: string;
  /** Resolves when everything is open and requests are served; rejects when that failed. */
  readonly ready: Promise<ReadyServer>;
  /** Lets requests under way finish, makes everything durable and releases the data directory. */
  close(): Promise<void>;
}

export interface ReadyServer {
  /** The owner key, if this start made it. It is not kept anywhere in this form but in its file. */
  readonly newOwnerKey: IssuedKey | undefined;
}

/** How the engine is opened; tests pass their own. */
export type OpenEngine = (config: Config, log: Logger, signal: AbortSignal) => Promise<SearchEngine>;

/**
 * Binds the port first, so that a taken one is known at once and readiness can be asked for, then opens the engine.
 *
 * @throws when the address cannot be bound, or TLS cannot be set up with the files given
 */
export async function startServer(
  config: Config,
  log: Logger,
  openEngine: OpenEngine = openConfigured,
): Promise<RunningServer> {
  let services: Services | undefined;
  const instruments = new Instruments();
  const drain = new Drain();
  const audit =
    config.auditLog === undefined
      ? undefined
      : await AuditLog.open(config.auditLog, log).catch(unusable('--audit-log', config.auditLog));
  instruments.audit = audit;
  const stopping = () => drain.isDraining;
  const options = { services: () => services, config, log, audit, instruments, stopping };
  const application = makeApplication(options);
  const answer = listener(createApp(options, application), application.inFlight);
  const { server, stop: stopTls } = await makeServer(config, drain.before(new Pipelined().before(answer)), log);
  server.maxConnections = MAX_CONNECTIONS;
  drain.watch(server);
  new Strangers(STRANGERS, log).watch(server);
  instruments.connections.watch(server);
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = REQUEST_MS;
  // Node would leave out what is beyond 2,000 without a word, such as the length of the body. Their bytes are bounded.
  server.maxHeadersCount = 0;
  server.on('clientError', malformedRequests(MAX_HEADER_BYTES));
  server.on('checkExpectation', refuseExpectation);
  const url = await listen(server, config);
  instruments.runtime.start();
  // It answers probes from here on, and may fail still: the directory can be in use.
  const settings = config.logFormat === 'text' ? changedSettings(config) : withoutSecrets(config);
  log.info('listening, opening the data directory', { url, config: settings });

  const opening = new AbortController();
  let stopKeys = (): void => undefined;
  const ready = (async (): Promise<ReadyServer> => {
    await makePrivate(config.data, log).catch(unusable('--data', config.data));
    const engine = await openEngine(config, log, opening.signal);
    // The engine holds the directory's lock from here on: only now may files in it be written.
    const keys = await KeyStore.open(
      config.data,
      { keys: config.maxApiKeys },
      sharedText(engine, 'api_keys', 'API keys'),
    );
    stopKeys = keys.follow(log);
    const scripts = await ScriptStore.open(config.data, sharedText(engine, 'scripts', 'stored scripts'));
    const tasks = await TaskHistory.open(config.data, log);
    const newOwnerKey = await ensureOwner(keys, config, log);
    services = {
      engine,
      keys,
      identity: await readIdentity(config.data),
      scripts,
      tasks,
      data: config.data,
      address: new URL(url).host,
    };
    log.info('ready', { url });
    return { newOwnerKey };
  })();

  const close = async (): Promise<void> => {
    await drain.close(server, config.shutdownSeconds * 1000);
    // An engine that is still opening is closed once it is open; one that waits for a cluster waits no longer.
    opening.abort();
    await ready.catch(() => undefined);
    const open = services;
    services = undefined;
    stopKeys();
    await application.asyncSearches.close();
    await closeSearch(config.data);
    // While the data directory is still this process's.
    await open?.keys.close(log);
    await open?.scripts.close().catch((error: unknown) => {
      log.error('the file of the stored scripts may hold a change that was refused', { error: String(error) });
    });
    await open?.tasks?.close();
    await open?.engine.close();
    stopTls();
    instruments.runtime.stop();
    await audit?.close();
    log.info('closed');
  };
  return { url, ready, close };
}

/** A handler of failures that names the option whose path cannot be used. */
function unusable(option: string, path: string): (error: unknown) => never {
  return (cause) => {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined) throw cause;
    // What cannot be written may be a folder above it, or a file in it.
    const { path: where = path } = cause as NodeJS.ErrnoException;
    const what = code === 'EACCES' && where !== path ? ` (${where})` : '';
    throw new UnusablePathError(`${option}: ${path} cannot be used: ${fileProblem(cause)}${what}`, { cause });
  };
}

/** A server for plain HTTP, or for TLS where there is a certificate. */
async function makeServer(
  config: Config,
  listener: RequestListener,
  log: Logger,
): Promise<{ readonly server: Server; readonly stop: () => void }> {
  const options = {
    noDelay: true,
    maxHeaderSize: MAX_HEADER_BYTES,
    connectionsCheckingInterval: LOOK_MS,
    IncomingMessage: ParsedRequest,
  };
  if (config.tlsCert !== undefined) return createTlsServer(config, options, listener, log);
  return { server: createServer(options, listener), stop: () => undefined };
}

async function openConfigured(config: Config, log: Logger, signal: AbortSignal): Promise<SearchEngine> {
  const native = await openNative(config);
  if (config.cluster === undefined) return native;
  try {
    const { ClusterSearchEngine } = await import('@sparrow-search/cluster');
    const options = {
      nodes: config.cluster.split(',').map((url) => url.trim()),
      caFile: config.clusterCa,
      credentialsFile: config.clusterCredentials,
      vectorEngine: config.clusterVectorEngine,
    };
    return await ClusterSearchEngine.open(native, options, log, signal);
  } catch (error) {
    await native.close();
    throw error;
  }
}

function openNative(config: Config): Promise<SearchEngine> {
  return NativeSearchEngine.open({
    data: config.data,
    models: [...embeddedModels(), ...(config.models === undefined ? [] : modelDirectories(config.models))],
    ...(config.models === undefined ? {} : { modelsFolder: config.models }),
    ...(config.repoPath === undefined ? {} : { repoPath: config.repoPath }),
    threads: config.threads,
    deployAtStart: config.deployAtStart,
    log: { level: config.logLevel, asText: config.logFormat === 'text' },
  });
}

async function ensureOwner(keys: KeyStore, config: Config, log: Logger): Promise<IssuedKey | undefined> {
  const given = config.apiKey === undefined ? undefined : decodeKey(config.apiKey);
  if (given !== undefined) {
    // The other servers of a cluster would refuse the key that their clients have.
    const replaces = !keys.isShared || config.clusterReplaceOwnerKey;
    if (await keys.setOwner(config.data, given.id, given.secret, Date.now(), replaces)) return undefined;
    throw new ConfigError(
      'the servers of this cluster have another owner key than the one that was given: start this server with their key, or ' +
        'without one. To replace their key by this one for all of them, start it with --cluster-replace-owner-key',
    );
  }
  const made = await keys.ensureOwner(config.data, Date.now());
  if (made === undefined && keys.isShared && !(await keys.isOwnerIn(config.data, Date.now()))) {
    log.info('the owner key was made by another server of this cluster', {
      owner_key: 'in the data directory of that server; to choose it, start all servers with the same SPARROW_API_KEY',
    });
  }
  return made;
}

function listen(server: Server, { host, port, tlsCert }: Config): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, BACKLOG, () => {
      server.off('error', reject);
      const address = server.address() as AddressInfo;
      const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
      resolve(`${tlsCert === undefined ? 'http' : 'https'}://${name}:${String(address.port)}`);
    });
  });
}
