import process from 'node:process';

import { HttpError, INTERFACE_VERSION, VERSION } from '@sparrow-search/endpoints';

import type { EngineFigures } from '../instruments/engine.js';
import type { Instruments } from '../instruments/instruments.js';
import { AGGREGATIONS } from './aggregations.js';
import {
  NAME,
  type NodeContext,
  PRESSURE,
  ROLES,
  TRANSPORT,
  answer,
  collect,
  head,
  isHere,
  metrics,
  percents,
} from './common.js';
import { type Machine, describeOs, measure, osPrettyName, processStatus } from './machine.js';

const INFO = [
  ...['settings', 'os', 'process', 'jvm', 'thread_pool', 'transport', 'http', 'plugins', 'ingest'],
  ...['aggregations', 'indices', 'remote_cluster_server'],
];
const STATS = [
  ...['indices', 'os', 'process', 'jvm', 'thread_pool', 'fs', 'transport', 'http', 'breaker', 'script'],
  ...['discovery', 'ingest', 'adaptive_selection', 'script_cache', 'indexing_pressure', 'repositories', 'allocations'],
];

/** What `crates/ingest/src/processors/mod.rs` has. */
const PROCESSORS = [
  ...['append', 'bytes', 'convert', 'csv', 'date', 'date_index_name', 'dissect', 'dot_expander', 'drop', 'fail'],
  ...['foreach', 'gsub', 'html_strip', 'inference', 'join', 'json', 'kv', 'lowercase', 'pipeline', 'remove'],
  ...['rename', 'script', 'set', 'sort', 'split', 'terminate', 'trim', 'uppercase', 'uri_parts', 'urldecode'],
];

/** Body of `GET /_nodes[/{node}][/{metric}]`. */
export async function nodesInfo(
  context: NodeContext,
  path: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>> = {},
): Promise<object> {
  // One part of the path may be either, as in Elasticsearch.
  const second = path['node_or_metric'];
  const isMetric = second?.split(',').every((name) => name === '_all' || INFO.includes(name)) === true;
  const metric = path['metric'] ?? (isMetric ? second : '');
  const chosen = metrics(metric, INFO, `/_nodes${path['node_id'] === undefined ? '' : `/${path['node_id']}`}`);
  const { node } = await context.ask('node_indices', { metric: 'docs' }, {});
  const nodes: Record<string, object> = {};
  if (isHere(path['node_id'] ?? (isMetric ? undefined : second), String(node))) {
    nodes[String(node)] = await describe(context, chosen, query['flat_settings'] ?? 'false');
  }
  return answer(context, nodes);
}

async function describe(
  { address, maxBodyBytes }: NodeContext,
  chosen: readonly string[],
  flat: string,
): Promise<object> {
  const machine = await measure('.', undefined);
  const started = Date.now() - machine.uptime_millis;
  const sections: Record<string, () => object | Promise<object>> = {
    settings: () => {
      if (flat !== 'false') {
        return { 'client.type': 'node', 'cluster.name': 'sparrow', 'node.name': NAME, 'http.type': 'node' };
      }
      const [client, http] = [{ type: 'node' }, { type: 'node' }];
      return { client, cluster: { name: 'sparrow' }, node: { name: NAME }, http };
    },
    os: async () => describeOs(await osPrettyName()),
    process: () => ({ refresh_interval_in_millis: 1000, id: process.pid, mlockall: false }),
    // The virtual machine here is that of JavaScript.
    jvm: () => ({
      pid: process.pid,
      version: process.version,
      vm_name: 'V8',
      vm_version: process.versions.v8,
      vm_vendor: 'Node.js',
      using_bundled_jdk: false,
      start_time_in_millis: started,
      mem: {
        heap_init_in_bytes: 0,
        heap_max_in_bytes: machine.heap_max,
        non_heap_init_in_bytes: 0,
        non_heap_max_in_bytes: 0,
        direct_max_in_bytes: 0,
      },
      gc_collectors: [],
      memory_pools: [],
      using_compressed_ordinary_object_pointers: 'false',
      input_arguments: process.execArgv,
    }),
    thread_pool: () => ({ search: { type: 'fixed' }, write: { type: 'fixed' } }),
    transport: () => ({ bound_address: [], publish_address: TRANSPORT, profiles: {} }),
    http: () => ({ bound_address: [address], publish_address: address, max_content_length_in_bytes: maxBodyBytes }),
    plugins: () => [],
    ingest: () => ({ processors: PROCESSORS.map((type) => ({ type })) }),
    aggregations: () => AGGREGATIONS,
    indices: () => ({}),
    remote_cluster_server: () => ({ bound_address: [], publish_address: null }),
  };
  return {
    ...head(),
    version: INTERFACE_VERSION,
    transport_version: 8841096,
    index_version: 8537000,
    component_versions: {},
    build_flavor: 'default',
    build_type: 'sparrow',
    build_hash: VERSION,
    roles: ROLES,
    attributes: {},
    ...(await collect(chosen, sections)),
    ...(chosen.includes('plugins') ? { modules: [] } : {}),
  };
}

/** Body of `GET /_nodes[/{node}]/stats[/{metric}[/{index_metric}]]`. */
export async function nodesStats(
  context: NodeContext,
  path: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): Promise<object> {
  const chosen = metrics(path['metric'] ?? '', STATS, '/_nodes/stats');
  const ofIndices = path['index_metric'] ?? '';
  if (ofIndices !== '' && ofIndices !== '_all' && !chosen.includes('indices')) {
    throw new HttpError(
      'illegal_argument',
      `request [/_nodes/stats/${path['metric'] ?? ''}/${ofIndices}] contains index metrics [${ofIndices}] but indices stats not requested`,
    );
  }
  const level = query['level'] === undefined ? {} : { level: query['level'] };
  const { node, indices, ingest, breakers } = await context.ask('node_indices', { metric: ofIndices }, level);
  const nodes: Record<string, object> = {};
  if (isHere(path['node_id'], String(node))) {
    const machine = await measure(context.data, context.address);
    const figures = (await context.ask('instruments', {}, {})) as unknown as EngineFigures;
    nodes[String(node)] = await measured(machine, { indices, ingest, breakers }, figures, context.instruments, chosen);
  }
  return answer(context, nodes);
}

async function measured(
  machine: Machine,
  { indices, ingest, breakers }: Readonly<Record<'indices' | 'ingest' | 'breakers', unknown>>,
  figures: EngineFigures,
  instruments: Instruments,
  chosen: readonly string[],
): Promise<object> {
  const now = Date.now();
  const memory = process.memoryUsage();
  const { anonymous, threads } = await processStatus();
  const cpu = process.cpuUsage();
  const [minute, five, fifteen] = machine.load ?? [];
  const disk = {
    total_in_bytes: machine.disk_total,
    free_in_bytes: machine.disk_free,
    available_in_bytes: machine.disk_available,
  };
  const sections: Record<string, () => object> = {
    indices: () => indices as object,
    os: () => ({
      timestamp: now,
      cpu: {
        percent: machine.cpu_percent,
        ...(minute === undefined ? {} : { load_average: { '1m': minute, '5m': five, '15m': fifteen } }),
      },
      mem: {
        total_in_bytes: machine.ram_total,
        adjusted_total_in_bytes: machine.ram_total,
        free_in_bytes: machine.ram_total - machine.ram_used,
        used_in_bytes: machine.ram_used,
        ...percents(machine.ram_used, machine.ram_total),
      },
    }),
    process: () => ({
      timestamp: now,
      ...(machine.file_descriptors === undefined ? {} : { open_file_descriptors: machine.file_descriptors }),
      ...(machine.file_descriptors_max === undefined ? {} : { max_file_descriptors: machine.file_descriptors_max }),
      cpu: { percent: machine.cpu_percent, total_in_millis: Math.round((cpu.user + cpu.system) / 1000) },
      mem: {
        resident_in_bytes: memory.rss,
        ...(anonymous === undefined ? {} : { anonymous_in_bytes: anonymous }),
      },
      uptime_in_millis: machine.uptime_millis,
    }),
    jvm: () => ({
      timestamp: now,
      uptime_in_millis: machine.uptime_millis,
      mem: {
        heap_used_in_bytes: machine.heap_used,
        heap_used_percent: Math.floor((machine.heap_used * 100) / machine.heap_max),
        heap_committed_in_bytes: machine.heap_committed,
        heap_max_in_bytes: machine.heap_max,
        non_heap_used_in_bytes: memory.external,
        non_heap_committed_in_bytes: memory.external,
        pools: {},
      },
      ...(threads === undefined ? {} : { threads: { count: threads } }),
      gc: { collectors: collectors(instruments) },
      buffer_pools: {},
    }),
    thread_pool: () =>
      Object.fromEntries(
        figures.lanes.map(({ name, workers, waiting, active, rejected, largest, completed }) => [
          name,
          { threads: workers, queue: waiting, active, rejected, largest, completed },
        ]),
      ),
    fs: () => ({ timestamp: now, total: disk, data: [{ ...disk }] }),
    transport: () => ({
      server_open: 0,
      total_outbound_connections: 0,
      rx_count: 0,
      rx_size_in_bytes: 0,
      tx_count: 0,
      tx_size_in_bytes: 0,
    }),
    http: () => ({ current_open: instruments.connections.open, total_opened: instruments.connections.opened }),
    breaker: () => breakers as object,
    script: () => ({ compilations: 0, cache_evictions: 0, compilation_limit_triggered: 0 }),
    discovery: () => ({
      cluster_state_queue: { total: 0, pending: 0, committed: 0 },
      published_cluster_states: { full_states: 0, incompatible_diffs: 0, compatible_diffs: 0 },
      cluster_state_update: {},
      serialized_cluster_states: {},
      cluster_applier_stats: { recordings: [] },
    }),
    ingest: () => ingest as object,
    adaptive_selection: () => ({}),
    script_cache: () => ({ sum: { compilations: 0, cache_evictions: 0, compilation_limit_triggered: 0 } }),
    indexing_pressure: () => ({ memory: PRESSURE }),
    repositories: () => ({}),
    allocations: () => ({}),
  };
  // Figures that nothing here counts are shown only to those who ask for them by name.
  const counted = ['indices', 'os', 'process', 'jvm', 'thread_pool', 'fs', 'http', 'breaker', 'ingest'];
  const shown = chosen.length === STATS.length ? counted : chosen;
  return {
    timestamp: now,
    ...head(),
    ip: TRANSPORT,
    roles: ROLES,
    attributes: {},
    ...inPlural(await collect(shown, sections)),
  };
}

/** What V8's garbage collector did, under the names of Elasticsearch's: young for what lives briefly, old for all else. */
function collectors({ runtime }: Instruments): object {
  const all = runtime.collections();
  const of = (isYoung: boolean): object => {
    const chosen = all.filter(({ kind }) => (kind === 'young') === isYoung);
    const sum = (value: (one: (typeof all)[number]) => number): number => chosen.reduce((a, one) => a + value(one), 0);
    return {
      collection_count: sum(({ count }) => count),
      collection_time_in_millis: Math.round(sum(({ seconds }) => seconds) * 1000),
    };
  };
  return { young: of(true), old: of(false) };
}

/** The section of one metric has another name than the metric. */
function inPlural({ breaker, ...others }: Readonly<Record<string, object>>): object {
  return breaker === undefined ? others : { ...others, breakers: breaker };
}
