import type { EngineReply, EngineRequest, Operation, SearchEngine } from '@sparrow-search/engine';

import type { ClusterLog } from './cluster-engine.js';
import { InTurn } from './in-turn.js';
import { type Json, isObject } from './json.js';
import { Lookout } from './lookout.js';
import { type SharedState, type Version, sameVersion } from './shared-state.js';

/** The name of the shared text. */
const ID = 'deployments';
const FORMAT = 1;

/** After how long what failed is tried again, in milliseconds: a model may have come, or memory. */
const RETRY_MS = 5_000;

/** What a deployment is started with. */
const SETTINGS = [
  ...['model_id', 'number_of_allocations', 'threads_per_allocation', 'queue_capacity', 'cache_size', 'priority'],
  'adaptive_allocations',
];

/** The settings of each deployment that was started or changed by a request, by its id; `stopped` for one that was stopped. */
type Wanted = Readonly<Record<string, Json | 'stopped'>>;

/**
 * Deployments that requests start, change and stop: each of Sparrow's servers does the same to its own. A server that lacks the model says
 * so in its log, and serves everything else.
 */
export class Deployments {
  readonly #native: SearchEngine;
  readonly #state: SharedState;
  readonly #log: ClusterLog;
  #known: Version | undefined;
  /** For each deployment of this server, the settings as JSON that were last asked for here, whether it took them or not. */
  #done = new Map<string, string>();
  /** Those that could not be made as they are wanted, with the reasons, and when they were tried last. */
  readonly #failed = new Map<string, { readonly reason: string; readonly at: number }>();
  readonly #steps = new InTurn();
  readonly #lookout: Lookout;

  constructor(native: SearchEngine, state: SharedState, log: ClusterLog) {
    this.#native = native;
    this.#state = state;
    this.#log = log;
    this.#lookout = new Lookout(
      () => this.#steps.run(() => this.#sync()),
      (error) => {
        log.warn('deployments of the other servers cannot be read', { error: String(error) });
      },
    );
  }

  /** Makes from now on what other servers ask for. */
  start(): void {
    this.#lookout.start();
  }

  close(): void {
    this.#lookout.close();
  }

  /** Answers what starts, changes or stops a deployment: carried out here, and then wanted of all servers. */
  change(request: EngineRequest, body?: Uint8Array): Promise<EngineReply> {
    return this.#steps.run(async () => {
      const before = await this.#running();
      const reply = await this.#native.execute(request, body);
      const after = await this.#running();
      const changes: Record<string, Json | 'stopped'> = {};
      for (const id of before) if (!after.includes(id)) changes[id] = 'stopped';
      const assignment = (JSON.parse(Buffer.from(reply.body).toString()) as { readonly assignment?: Json }).assignment;
      const given = assignment?.['task_parameters'];
      if (assignment !== undefined && isObject(given)) {
        const all: Json = { ...given, adaptive_allocations: assignment['adaptive_allocations'] };
        const settings = SETTINGS.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]] as const]));
        changes[String(given['deployment_id'])] = Object.fromEntries(settings);
      }
      for (const [id, wanted] of Object.entries(changes)) {
        this.#done.set(id, JSON.stringify(wanted));
        this.#failed.delete(id);
      }
      await this.#keep(changes);
      return reply;
    });
  }

  async #keep(changes: Wanted): Promise<void> {
    if (Object.keys(changes).length === 0) return;
    await this.#state.change(ID, (before) =>
      JSON.stringify({ format: FORMAT, [ID]: { ...wantedIn(before), ...changes } }),
    );
  }

  async #sync(): Promise<void> {
    const version = await this.#state.version(ID);
    const due = [...this.#failed.values()].some(({ at }) => at + RETRY_MS <= Date.now());
    if (version === undefined || (!due && sameVersion(version, this.#known))) return;
    const shared = await this.#state.read(ID);
    for (const [id, wanted] of Object.entries(wantedIn(shared?.text))) {
      const text = JSON.stringify(wanted);
      const failed = this.#failed.get(id);
      if (this.#done.get(id) === text && failed === undefined) continue;
      this.#done.set(id, text);
      this.#failed.delete(id);
      try {
        await this.#make(id, wanted);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#failed.set(id, { reason, at: Date.now() });
        if (failed?.reason !== reason)
          this.#log.warn('a deployment cannot be as it is wanted on this server', { deployment: id, error: reason });
      }
    }
    this.#known = shared?.version;
  }

  async #make(id: string, wanted: Json | 'stopped'): Promise<void> {
    const isRunning = (await this.#running()).includes(id);
    if (wanted === 'stopped') {
      if (isRunning) await this.#ask('stop_deployment', id, { force: 'true' });
      return;
    }
    const { model_id: model, number_of_allocations: number, adaptive_allocations: adaptive, ...others } = wanted;
    const size = adaptive === undefined ? { number_of_allocations: number } : { adaptive_allocations: adaptive };
    if (isRunning) await this.#ask('update_deployment', id, {}, size);
    else await this.#ask('start_deployment', String(model), {}, { ...others, ...size, deployment_id: id });
  }

  async #running(): Promise<readonly string[]> {
    const { body } = await this.#native.execute({ op: 'trained_model_stats', path: {}, query: { size: '10000' } });
    const { trained_model_stats: all } = JSON.parse(Buffer.from(body).toString()) as {
      readonly trained_model_stats: readonly { readonly deployment_stats?: { readonly deployment_id?: string } }[];
    };
    return all.flatMap(({ deployment_stats: stats }) => stats?.deployment_id ?? []);
  }

  #ask(op: Operation, model: string, query: EngineRequest['query'], body?: object): Promise<EngineReply> {
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    return this.#native.execute({ op, path: { model }, query }, sent);
  }
}

function wantedIn(text: string | undefined): Wanted {
  const { format, [ID]: wanted } = JSON.parse(text ?? '{}') as Json;
  return format === FORMAT && isObject(wanted) ? (wanted as Wanted) : {};
}
