import type { Command } from 'commander';

import { Context, type ServerOptions, jsonOption, withServer } from '../context.js';
import { CommandError } from '../errors.js';
import { strange } from '../remote.js';
import { bytes, counted, duration, number, table } from '../terminal.js';

interface Memory {
  readonly resident_in_bytes: number;
  /** What of it is no mapped file, which the system takes back when it needs it. Only Linux tells. */
  readonly anonymous_in_bytes?: number;
}

interface Stats {
  readonly nodes: Readonly<
    Record<string, { readonly process: { readonly mem: Memory; readonly uptime_in_millis?: number } }>
  >;
}

interface CatIndex {
  readonly index: string;
  readonly health: string;
  readonly status: string;
  /** Replicas, of which one server holds none. */
  readonly rep: string;
  readonly 'docs.count': string | null;
  readonly 'store.size': string | null;
}

/** `sparrow status`: whether a server serves, what it holds, and what it takes. */
export function addStatus(program: Command): void {
  withServer(
    program.command('status').description('show whether the server is ready, and what it holds'),
    jsonOption('{url, status, version, interface, uptime_ms, memory_bytes, models, indices}'),
  ).action(async (options: ServerOptions) => {
    const context = new Context(options);
    const { remote } = context;
    const { url } = remote.target;
    const ready = await remote.request<{ status?: string }>('GET', '/_health').catch((error: unknown) => {
      // It answers, but does not serve yet, or no more.
      const { status, body } = error as { status?: number; body?: { status?: string } };
      if (status !== 503 || typeof body?.status !== 'string') throw error;
      return { status: body.status };
    });
    const { status } = ready;
    if (typeof status !== 'string') throw new CommandError(strange(url));
    if (status !== 'ready') {
      process.exitCode = 1;
      context.show({ url, ...ready }, () => `${url} is ${status}\n`);
      return;
    }
    const [info, indices, stats, models, full] = await Promise.all([
      remote.request<{ version: { number: string; build_hash: string } }>('GET', '/'),
      remote.request<CatIndex[]>('GET', '/_cat/indices', { query: { format: 'json', bytes: 'b', s: 'index' } }),
      remote.request<Stats>('GET', '/_nodes/stats', { query: { filter_path: 'nodes.*.process' } }),
      deployed(context),
      closedToWrites(context),
    ]);
    const [node] = Object.values(stats.nodes);
    const found = {
      url,
      status,
      version: info.version.build_hash,
      interface: info.version.number,
      uptime_ms: node?.process.uptime_in_millis,
      memory_bytes: node?.process.mem.anonymous_in_bytes ?? node?.process.mem.resident_in_bytes,
      models,
      indices: indices.map((one) => ({
        name: one.index,
        health: one.health,
        status: one.status,
        documents: Number(one['docs.count'] ?? 0),
        bytes: Number(one['store.size'] ?? 0),
      })),
    };
    context.show(found, (out) =>
      [
        `${out.bold(url)}  ${out.good(status)}  Sparrow ${found.version}, interface of Elasticsearch ${found.interface}\n`,
        `up ${duration(found.uptime_ms ?? 0)}, ${bytes(found.memory_bytes ?? 0)} of memory, models at work: ${models.join(', ') || 'none'}\n`,
        found.indices.length === 0
          ? 'no indices\n'
          : `\n${table(
              out,
              ['index', 'documents', 'size', 'state'],
              found.indices.map((one) => [
                one.name,
                number(one.documents),
                bytes(one.bytes),
                // Yellow is the usual state of a single server.
                one.status !== 'open' ? one.status : one.health === 'red' ? out.bad('red') : 'open',
              ]),
              'documents size',
            )}${whyYellow(indices)}${full.length === 0 ? '' : out.bad(`the disk is nearly full, so writes are refused to ${full.join(', ')}: make room, and writes resume by themselves`) + '\n'}`,
      ].join(''),
    );
  });
}

/** Settings by their full names, of each index. */
type FlatSettings = Readonly<Record<string, { readonly settings?: Readonly<Record<string, string>> }>>;

/** The indices that take no writes since the disk is nearly full; none where the key may not see that. */
async function closedToWrites({ remote }: Context): Promise<readonly string[]> {
  const path = '/_all/_settings/index.blocks.*';
  const settings = await remote
    .request<FlatSettings>('GET', path, { query: { flat_settings: 'true' } })
    .catch((): FlatSettings => ({}));
  return Object.keys(settings).filter(
    (name) => settings[name]?.settings?.['index.blocks.read_only_allow_delete'] === 'true',
  );
}

/** Why `_cluster/health` is yellow, where it is. */
function whyYellow(indices: readonly CatIndex[]): string {
  const yellow = indices.filter(({ health }) => health === 'yellow');
  const failing = yellow.filter(({ rep }) => rep === '0').map(({ index }) => index);
  const waiting = yellow.length - failing.length;
  const replicas =
    waiting === 0
      ? ''
      : `cluster health is yellow, which is normal for a single server: ${counted(waiting, 'index asks', 'indices ask')} for replicas, and a replica needs a second server\n`;
  const work =
    failing.length === 0
      ? ''
      : `cluster health is yellow because background work fails for ${failing.join(', ')}: the server's log says why\n`;
  return `${replicas}${work}`;
}

async function deployed({ remote }: Context): Promise<string[]> {
  const { trained_model_stats: models } = await remote.request<{
    trained_model_stats: readonly { model_id: string; deployment_stats?: { deployment_id: string; state: string } }[];
  }>('GET', '/_ml/trained_models/_all/_stats');
  return models.flatMap(({ deployment_stats: one }) => (one?.state === 'started' ? [one.deployment_id] : []));
}
