import { HttpError } from '@sparrow-search/endpoints';

import { NODE_NAME } from '../identity.js';
import type { NodeContext } from './common.js';
import { type Machine, measure } from './machine.js';

/** What a report is made of. */
export interface HealthFigures {
  readonly clusterName: string;
  /** The id of the node. */
  readonly nodeId: string;
  /** The body of `GET /_cluster/health`. */
  readonly health: Readonly<Record<string, unknown>>;
  readonly machine: Pick<Machine, 'disk_available' | 'disk_total'>;
}

type Status = 'green' | 'yellow' | 'red' | 'unknown';

interface Indicator {
  readonly status: Status;
  readonly symptom: string;
  readonly details?: object;
  readonly impacts?: readonly object[];
}

/** From the worst to the best, as the whole report takes the worst. */
const WORST: readonly Status[] = ['red', 'yellow', 'unknown', 'green'];

/** Shares of the disk that are in use where Elasticsearch begins to warn, and where indices become read-only. */
const HIGH = 0.9;
const FLOOD = 0.95;

/** Asks the engine and the machine for the figures of a report. */
export async function healthFigures({ ask, identity, data }: NodeContext): Promise<HealthFigures> {
  const [health, { node }, machine] = await Promise.all([
    ask('cluster_health', {}, {}),
    ask('node_indices', {}, {}),
    measure(data, undefined),
  ]);
  return { clusterName: identity.clusterName, nodeId: String(node), health, machine };
}

/**
 * The body of `GET /_health_report`: only what there is here has an indicator.
 *
 * @param feature the one indicator that is asked for, if any
 * @param verbose whether details are shown
 * @throws {HttpError} 404 for an indicator that there is not
 */
export function healthReport(figures: HealthFigures, feature: string | undefined, verbose: boolean): object {
  const all: Readonly<Record<string, Indicator>> = {
    master_is_stable: masterIsStable(figures),
    disk: disk(figures),
    shards_availability: shardsAvailability(figures),
  };
  const chosen = feature === undefined ? Object.entries(all) : Object.entries(all).filter(([name]) => name === feature);
  if (chosen.length === 0) throw new HttpError('not_found', `Did not find indicator ${feature ?? ''}`);
  const status = WORST.find((one) => chosen.some(([, indicator]) => indicator.status === one)) ?? 'green';
  const shown = chosen.map(([name, { details, ...rest }]) => [name, verbose ? { ...rest, details } : rest]);
  return {
    // As in Elasticsearch, one indicator alone has its own status only.
    ...(feature === undefined ? { status } : {}),
    cluster_name: figures.clusterName,
    indicators: Object.fromEntries(shown) as object,
  };
}

function masterIsStable({ nodeId }: HealthFigures): Indicator {
  const node = { node_id: nodeId, name: NODE_NAME };
  return {
    status: 'green',
    symptom: 'The cluster has a stable master node',
    details: { current_master: node, recent_masters: [node] },
  };
}

function disk({ machine: { disk_available: available, disk_total: total } }: HealthFigures): Indicator {
  const used = available === undefined || total === undefined || total === 0 ? undefined : 1 - available / total;
  const count = (holds: boolean): number => (holds ? 1 : 0);
  const details = {
    indices_with_readonly_block: 0,
    nodes_with_enough_disk_space: count(used !== undefined && used < HIGH),
    nodes_with_unknown_disk_status: count(used === undefined),
    nodes_over_high_watermark: count(used !== undefined && used >= HIGH && used < FLOOD),
    nodes_over_flood_stage_watermark: count(used !== undefined && used >= FLOOD),
  };
  if (used === undefined) return { status: 'unknown', symptom: 'No disk usage data.', details };
  if (used < HIGH) return { status: 'green', symptom: 'The cluster has enough available disk space.', details };
  return {
    status: used < FLOOD ? 'yellow' : 'red',
    symptom: `1 node with roles: [data] is out of disk or running low on disk space.`,
    details,
    impacts: [impact('disk', 'ingest_capability_at_risk', 'Writes are refused when the disk is full.', 'ingest')],
  };
}

function shardsAvailability({ health }: HealthFigures): Indicator {
  const count = (name: string): number => Number(health[name] ?? 0);
  const started = count('active_primary_shards');
  const missing = count('unassigned_shards');
  const isRed = health['status'] === 'red';
  const details = {
    ...{ unassigned_primaries: isRed ? missing : 0, initializing_primaries: count('initializing_shards') },
    ...{ creating_primaries: 0, restarting_primaries: 0, started_primaries: started },
    ...{ unassigned_replicas: isRed ? 0 : missing, initializing_replicas: 0, creating_replicas: 0 },
    ...{ restarting_replicas: 0, started_replicas: count('active_shards') - started },
  };
  if (health['status'] === 'green') {
    return { status: 'green', symptom: 'This cluster has all shards available.', details };
  }
  const kind = isRed ? 'primary' : 'replica';
  const shards = missing === 1 ? 'shard' : 'shards';
  return {
    status: isRed ? 'red' : 'yellow',
    symptom: `This cluster has ${String(missing)} unavailable ${kind} ${shards}.`,
    details,
    impacts: isRed
      ? [
          impact(
            'shards_availability',
            'primary_unassigned',
            'Some indices cannot be searched or written.',
            'search',
            'ingest',
          ),
        ]
      : [
          impact(
            'shards_availability',
            'replica_unassigned',
            'One server has no place for copies of its indices.',
            'search',
          ),
        ],
  };
}

function impact(indicator: string, name: string, description: string, ...areas: readonly string[]): object {
  const id = `elasticsearch:health:${indicator}:impact:${name}`;
  return { id, severity: areas.length > 1 ? 1 : 2, description, impact_areas: areas };
}
