import process from 'node:process';

import { INTERFACE_VERSION } from '@sparrow-search/endpoints';

import { type NodeContext, PRESSURE, isHere, percents, pick } from './common.js';
import { describeOs, measure, osPrettyName, processStatus } from './machine.js';

/** Body of `GET /_cluster/stats[/nodes/{node_id}]`. */
export async function clusterStats(context: NodeContext, path: Readonly<Record<string, string>>): Promise<object> {
  const [figures, { indices, node }, machine, prettyName, { threads }] = await Promise.all([
    context.ask('cluster_figures', {}, {}),
    context.ask('node_indices', {}, {}),
    measure(context.data, undefined),
    osPrettyName(),
    processStatus(),
  ]);
  const of = indices as Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>>;
  const here = isHere(path['node_id'], String(node)) ? 1 : 0;
  const count = Number(figures['indices']);
  const active = Number(figures['active']);
  const same = (value: number): object => ({ min: value, max: value, avg: value });
  const one = active === 0 ? 0 : 1;
  const { name, arch } = describeOs(prettyName) as { name: string; arch: string };
  const { available_processors: cores } = describeOs('') as { available_processors: number };
  return {
    _nodes: { total: here, successful: here, failed: 0 },
    cluster_name: context.identity.clusterName,
    cluster_uuid: context.identity.clusterUuid,
    timestamp: Date.now(),
    status: figures['status'],
    indices: {
      count,
      shards:
        active === 0
          ? {}
          : {
              total: active,
              primaries: active,
              replication: 0,
              index: { shards: same(one), primaries: same(one), replication: same(0) },
            },
      ...pick(of, ['docs', 'store', 'fielddata', 'query_cache', 'completion', 'segments']),
      mappings: {
        total_field_count: figures['fields'],
        total_deduplicated_field_count: figures['fields'],
        total_deduplicated_mapping_size_in_bytes: 0,
        field_types: figures['field_types'],
        runtime_field_types: [],
        source_modes: { stored: count },
      },
      analysis: {
        char_filter_types: [],
        tokenizer_types: [],
        filter_types: [],
        analyzer_types: [],
        built_in_char_filters: [],
        built_in_tokenizers: [],
        built_in_filters: [],
        built_in_analyzers: [],
        synonyms: {},
      },
      versions: [
        {
          version: INTERFACE_VERSION,
          index_count: count,
          primary_shard_count: active,
          total_primary_bytes: of['store']?.['size_in_bytes'] ?? 0,
        },
      ],
      search: { total: of['search']?.['query_total'] ?? 0, queries: {}, rescorers: {}, sections: {}, retrievers: {} },
      dense_vector: of['dense_vector'] ?? { value_count: 0 },
      sparse_vector: of['sparse_vector'] ?? { value_count: 0 },
    },
    nodes: {
      count: {
        total: here,
        coordinating_only: 0,
        data: here,
        data_cold: 0,
        data_content: 0,
        data_frozen: 0,
        data_hot: 0,
        data_warm: 0,
        index: 0,
        ingest: here,
        master: here,
        ml: here,
        remote_cluster_client: here,
        search: 0,
        transform: 0,
        voting_only: 0,
      },
      versions: [INTERFACE_VERSION],
      os: {
        available_processors: cores,
        allocated_processors: cores,
        names: [{ name, count: 1 }],
        pretty_names: [{ pretty_name: prettyName, count: 1 }],
        architectures: [{ arch, count: 1 }],
        mem: {
          total_in_bytes: machine.ram_total,
          adjusted_total_in_bytes: machine.ram_total,
          free_in_bytes: machine.ram_total - machine.ram_used,
          used_in_bytes: machine.ram_used,
          ...percents(machine.ram_used, machine.ram_total),
        },
      },
      process: {
        cpu: { percent: machine.cpu_percent },
        ...(machine.file_descriptors === undefined ? {} : { open_file_descriptors: same(machine.file_descriptors) }),
      },
      jvm: {
        max_uptime_in_millis: machine.uptime_millis,
        versions: [
          {
            version: process.version,
            vm_name: 'V8',
            vm_version: process.versions.v8,
            vm_vendor: 'Node.js',
            bundled_jdk: false,
            using_bundled_jdk: false,
            count: 1,
          },
        ],
        mem: { heap_used_in_bytes: machine.heap_used, heap_max_in_bytes: machine.heap_max },
        ...(threads === undefined ? {} : { threads }),
      },
      fs: {
        total_in_bytes: machine.disk_total,
        free_in_bytes: machine.disk_free,
        available_in_bytes: machine.disk_available,
      },
      plugins: [],
      network_types: { transport_types: {}, http_types: { node: 1 } },
      discovery_types: { 'single-node': 1 },
      packaging_types: [{ flavor: 'default', type: 'sparrow', count: 1 }],
      ingest: { number_of_pipelines: figures['pipelines'], processor_stats: figures['processor_stats'] },
      indexing_pressure: { memory: PRESSURE },
    },
    snapshots: {
      current_counts: {
        snapshots: 0,
        shard_snapshots: 0,
        snapshot_deletions: 0,
        concurrent_operations: 0,
        cleanups: 0,
      },
      repositories: {},
    },
    repositories: {},
    ccs: { _search: NO_REMOTE_SEARCH },
  };
}

const NO_TIMES = { max: 0, avg: 0, p90: 0 };
const NO_REMOTE_SEARCH = {
  total: 0,
  success: 0,
  skipped: 0,
  took: NO_TIMES,
  took_mrt_true: NO_TIMES,
  took_mrt_false: NO_TIMES,
  remotes_per_search_max: 0,
  remotes_per_search_avg: 0,
  failure_reasons: {},
  features: {},
  clients: {},
  clusters: {},
};
