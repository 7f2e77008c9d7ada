import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Cancel, EngineReply, EngineRequest, SearchEngine } from '@sparrow-search/engine';
import { EngineError, matchesGlob } from '@sparrow-search/engine';

import { pipelinesOf, translatedQuery } from './by-query.js';
import type { ClusterLog } from './cluster-engine.js';
import { type CopyPlan, type Copying, type Progress, copy, countOf, shardsOf } from './copy.js';
import { pipelineOf } from './default-pipelines.js';
import { dryRun } from './dry-run.js';
import type { DynamicFields } from './dynamic-fields.js';
import { illegal, notOverCluster, refusal } from './errors.js';
import type { FieldModels } from './field-models.js';
import type { FinalPipelines } from './final-pipelines.js';
import { decode, isSet, parseAnswer } from './json.js';
import {
  type Filling,
  beginChange,
  cancelled,
  concluded,
  fieldModels,
  fill,
  stepModel,
  stopped,
} from './model-changes.js';
import { type Names, encodeExpression, isPattern } from './names.js';
import type { Pipelines } from './pipelines.js';
import type { Product } from './product.js';
import { readSearch } from './reading.js';
import { planInPlace, planOf, readReindex } from './reindex.js';
import { replyOf, stoppable, withWarnings } from './replies.js';
import { Conflict, type Version } from './shared-state.js';
import { CHANGE, TASK_NODE, type TaskRecord, UPGRADE, newTally, response, view } from './task-record.js';
import { type Kept, LEASE_MS, TaskStore } from './task-store.js';
import type { Transport } from './transport.js';
import type { Seals } from './seals.js';
import type { SemanticFields } from './semantic-fields.js';
import type { VectorFields } from './vector-fields.js';
import { WITH_TEMPLATES, checkWrite } from './writing.js';

/** What tasks need of their surroundings. */
export interface Working {
  readonly transport: Transport;
  readonly names: Names;
  readonly pipelines: Pipelines;
  readonly product: Product;
  readonly native: SearchEngine;
  readonly models: FieldModels;
  readonly vectors: VectorFields;
  readonly semantic: SemanticFields;
  readonly seals: Seals;
  readonly finals: FinalPipelines;
  readonly dynamic: DynamicFields;
  readonly log: ClusterLog;
}

/** How often a node looks for tasks whose node is gone, and says that it works on its own. */
const SWEEP_MS = 5_000;

/** How long a request for a task waits unless it says otherwise, and how often it looks. */
const DEFAULT_WAIT_MS = 30_000;
const LOOK_MS = 100;

/** A task that this node works on. */
interface Running {
  version: Version;
  record: TaskRecord;
  /** Its writings, one after another. */
  writing: Promise<unknown>;
  stopped: boolean;
  readonly finished: Promise<TaskRecord>;
}

/** Copies through a pipeline, which Sparrow carries out, and the tasks of the cluster. */
export class Tasks {
  readonly #store: TaskStore;
  readonly #owner = randomUUID();
  readonly #running = new Map<number, Running>();
  #context: Working | undefined;
  #sweeper: NodeJS.Timeout | undefined;
  #isClosed = false;

  private constructor(store: TaskStore) {
    this.#store = store;
  }

  static async open(transport: Transport): Promise<Tasks> {
    return new Tasks(await TaskStore.open(transport));
  }

  /** Begins to look for tasks that have no node. */
  start(context: Working): void {
    this.#context = context;
    this.#sweeper = setInterval(() => {
      void this.#sweep();
    }, SWEEP_MS).unref();
  }

  /** Stops working. What is not done is gone on with by another node, or by this one when it starts again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    for (const running of this.#running.values()) running.stopped = true;
    await Promise.all([...this.#running.values()].map(({ finished }) => finished.catch(() => undefined)));
  }

  answer(request: EngineRequest, body: Uint8Array | undefined, cancel?: Cancel): Promise<EngineReply> {
    switch (request.op) {
      case 'reindex':
        return this.#reindex(request, body, cancel);
      case 'get_task':
        return stoppable(cancel, (signal) => this.#get(request, signal));
      case 'list_tasks':
        return this.#list(request);
      case 'cancel_task':
        return this.#cancel(request);
      case 'upgrade_index':
        return this.#upgrade(request);
      case 'change_model':
        return this.#changeModel(request, body, cancel);
      case 'switch_model':
      case 'roll_back_model':
      case 'drop_model':
        return stepModel(this.#work, request, this.#filling);
      case 'get_field_models':
        return fieldModels(this.#work, request, this.#filling);
      default:
        return this.#byQuery(request, body, cancel);
    }
  }

  get #work(): Working {
    if (this.#context === undefined) throw new Error('tasks were not started');
    return this.#context;
  }

  async #reindex(request: EngineRequest, bytes: Uint8Array | undefined, cancel?: Cancel): Promise<EngineReply> {
    const { transport, names, pipelines, semantic, finals, dynamic } = this.#work;
    const restricted = request.rights !== undefined;
    const asked = readReindex(bytes === undefined ? '{}' : decode(bytes));
    const searching = restricted ? { ...request, action: 'indices:data/read/search' } : request;
    const source = await names.expression(searching, asked.source);
    await checkWrite(this.#work, request, asked.dest, asked.creates ? 'create' : 'index');
    if (source === undefined) throw illegal(`[${asked.source}] stands for no index`);
    if (restricted && asked.onlyCluster === 'script') {
      throw notOverCluster('a script of a reindex, for a key that may use some indices only,');
    }
    const query = await translatedQuery(this.#work, request, source, asked, cancel);
    const pipeline = await pipelineOf(this.#work, asked.pipeline, asked.dest);
    const warnings = query?.warnings ?? [];
    const { dry_run: dry, ...parameters } = request.query;
    if (isSet(dry)) {
      await pipelines.sync();
      // Which documents are read first, and how they are written, changes no figure.
      const { onlyCluster } = asked;
      const refused = onlyCluster === 'script' || onlyCluster === 'slice' ? onlyCluster : undefined;
      const tried = { ...asked, onlyCluster: refused };
      const plan = planOf(tried, source, query?.text, pipeline, parameters, 'with [dry_run]');
      return withWarnings(json(200, await dryRun(this.#work, plan, cancel)), warnings);
    }
    const last = await finals.of(asked.dest);
    const makes = (await semantic.writtenTo(asked.dest)) !== undefined || (await dynamic.mayBring(asked.dest));
    if ((pipeline ?? last) === undefined && !makes) {
      const body = asked.forCluster(source, query?.text);
      const reply = await transport.ask({ method: 'POST', path: '/_reindex', query: parameters, body });
      return withWarnings(replyOf(reply), warnings);
    }
    await pipelines.sync();
    const how = (pipeline ?? last) === undefined ? 'into an index with semantic_text fields' : 'through a pipeline';
    const plan = planOf(asked, source, query?.text, pipeline, parameters, how);
    const description = `reindex from [${asked.source}] to [${asked.dest}]`;
    return withWarnings(await this.#asTask(request, plan, 'indices:data/write/reindex', description), warnings);
  }

  async #changeModel(request: EngineRequest, bytes: Uint8Array | undefined, cancel?: Cancel): Promise<EngineReply> {
    const keep = (plan: CopyPlan, description: string): Promise<Running> =>
      this.#begun(request, plan, CHANGE, description);
    return this.#answered(request, await beginChange(this.#work, request, bytes, this.#filling, keep, cancel));
  }

  /** The task that fills the second vectors of an index, on whichever server it is. */
  readonly #filling = async (index: string): Promise<Filling | undefined> => {
    const open = await this.#store.open();
    const isOf = ({ record }: Kept): boolean =>
      record.action === CHANGE && (JSON.parse(record.request) as CopyPlan).source === index;
    // A list may be older than what was written last.
    const kept = await Promise.all(open.filter(isOf).map(({ record }) => this.#store.read(record.number)));
    const record = kept.map((it) => it?.record).find((it) => it !== undefined && it.end === undefined);
    if (record === undefined) return undefined;
    const { number, tally } = record;
    return { task: `${TASK_NODE}:${String(number)}`, total: tally.total, filled: tally.updated };
  };

  /** Carries out a copy as a task; answers what it did, or which task it is. */
  async #asTask(request: EngineRequest, plan: CopyPlan, action: string, description: string): Promise<EngineReply> {
    return this.#answered(request, await this.#begun(request, plan, action, description));
  }

  async #begun(request: EngineRequest, plan: CopyPlan, action: string, description: string): Promise<Running> {
    const record: TaskRecord = {
      format: 1,
      number: Date.now(),
      action,
      description,
      start: Date.now(),
      opaqueId: request.opaqueId,
      request: JSON.stringify(plan),
      rights: request.rights,
      query: request.query,
      shards: await shardsOf(this.#work.transport, plan.source),
      tally: { ...newTally(), total: await countOf(this.#work.transport, plan) },
      failures: [],
    };
    return this.#begin(record);
  }

  async #answered(request: EngineRequest, running: Running): Promise<EngineReply> {
    if (request.query['wait_for_completion'] === 'false') {
      return json(200, { task: `${TASK_NODE}:${String(running.record.number)}` });
    }
    const done = await running.finished;
    if (done.error !== undefined) throw refusalOf(done.error);
    if (done.end === undefined) {
      const reason = `this server is stopping; task [${TASK_NODE}:${String(done.number)}] goes on on another one`;
      throw refusal(503, 'node_closed_exception', reason);
    }
    return json(done.failures[0]?.status ?? 200, response(done));
  }

  /** Sets a task down, under the next free number, and begins it. */
  async #begin(wanted: TaskRecord): Promise<Running> {
    const { record, version } = await this.#create(wanted);
    return this.#run({ record, owner: this.#owner, version });
  }

  async #create(wanted: TaskRecord): Promise<{ record: TaskRecord; number: number; version: Version }> {
    for (let number = wanted.number; ; number += 1) {
      try {
        const record = { ...wanted, number };
        return { record, number, version: await this.#store.create(record, this.#owner) };
      } catch (error) {
        if (!(error instanceof Conflict)) throw error;
      }
    }
  }

  #run({ record, version }: Kept): Running {
    const ended = this.#carryOut.bind(this);
    const running: Running = { record, version, writing: Promise.resolve(), stopped: false, finished: later() };
    const { number } = record;
    this.#running.set(number, running);
    const finished = ended(running).finally(() => this.#running.delete(number));
    finished.catch((error: unknown) => {
      this.#work.log.warn('a task was not gone on with by this node', { task: number, error: String(error) });
    });
    return Object.assign(running, { finished });
  }

  async #carryOut(running: Running): Promise<TaskRecord> {
    const { transport, product, pipelines, models } = this.#work;
    const { record } = running;
    const plan = JSON.parse(record.request) as ReturnType<typeof planOf>;
    const checkTarget = (index: string): Promise<void> =>
      checkWrite(this.#work, { query: {}, rights: record.rights }, index, plan.creates ? 'create' : 'index');
    const beat = setInterval(() => {
      this.#save(running, {}).catch(() => undefined);
    }, LEASE_MS / 3);
    try {
      await pipelines.sync();
      const setDown = async (progress: Progress): Promise<boolean> => {
        await this.#save(running, progress);
        return running.record.cancelled === undefined && !running.stopped;
      };
      const { semantic, finals, dynamic, log } = this.#work;
      const context = { transport, product, pipelines, models, semantic, finals, dynamic, log, checkTarget };
      if (plan.change !== undefined) return await this.#fill(context, plan, running, setDown);
      const progress = await copy(context, plan, record, setDown);
      if (running.stopped) return await this.#handedBack(running, beat);
      return await this.#save(running, { ...progress, end: Date.now() });
    } catch (error) {
      if (error instanceof Ended && running.stopped) return await this.#handedBack(running, beat);
      // Another server took it over, or will.
      if (error instanceof Conflict || running.stopped) throw error;
      return await this.#save(running, { error: causeOf(error), end: Date.now() });
    } finally {
      clearInterval(beat);
    }
  }

  /** Sets a task down so that another server need not wait until its lease is over. */
  async #handedBack(running: Running, beat: NodeJS.Timeout): Promise<TaskRecord> {
    clearInterval(beat);
    await running.writing;
    running.version = await this.#store.save(running.record, this.#owner, running.version, 0);
    return running.record;
  }

  /** Carries out the change of a model. */
  async #fill(
    context: Copying,
    plan: CopyPlan,
    running: Running,
    setDown: (progress: Progress) => Promise<boolean>,
  ): Promise<TaskRecord> {
    const isCancelled = (): boolean => running.record.cancelled !== undefined;
    const goesOn = (): void => {
      if (running.stopped || isCancelled()) throw new Ended();
    };
    const ends = async (change: Partial<TaskRecord>): Promise<TaskRecord> =>
      this.#save(running, { ...change, failures: [], end: Date.now() });
    try {
      const progress = await fill(this.#work, context, plan, running.record, setDown);
      if (progress.failures.length === 0) goesOn();
      return await ends({ ...progress, outcome: await concluded(this.#work, plan, progress, goesOn) });
    } catch (error) {
      if (!running.stopped && isCancelled()) return await ends({ outcome: await cancelled(this.#work, plan) });
      if (!running.stopped && !(error instanceof Conflict)) {
        const { reason } = causeOf(error) as { readonly reason: string };
        await stopped(this.#work, plan, reason).catch(() => undefined);
      }
      throw error;
    }
  }

  /** Sets a change of a task down. One that another node made is a cancellation, or it took the task over. */
  #save(running: Running, change: Partial<TaskRecord>): Promise<TaskRecord> {
    const written = running.writing.then(async () => {
      for (;;) {
        const record = { ...running.record, ...change };
        try {
          running.version = await this.#store.save(record, this.#owner, running.version);
          running.record = record;
          return record;
        } catch (error) {
          const latest = error instanceof Conflict ? await this.#store.read(record.number) : undefined;
          if (latest?.owner !== this.#owner) {
            running.stopped = true;
            throw error;
          }
          running.version = latest.version;
          running.record = { ...running.record, cancelled: latest.record.cancelled };
        }
      }
    });
    running.writing = written.catch(() => undefined);
    return written;
  }

  /** Takes over tasks whose node says nothing any more. */
  async #sweep(): Promise<void> {
    try {
      for (const kept of await this.#store.open(Date.now())) {
        if (this.#isClosed || this.#running.has(kept.record.number)) continue;
        const version = await this.#store.save(kept.record, this.#owner, kept.version).catch((error: unknown) => {
          if (error instanceof Conflict) return undefined;
          throw error;
        });
        if (version === undefined) continue;
        this.#work.log.info('going on with a task of a node that is gone', { task: kept.record.number });
        this.#run({ record: kept.record, owner: this.#owner, version });
      }
    } catch (error) {
      this.#work.log.warn('tasks without a node could not be looked for', { error: String(error) });
    }
  }

  async #get(request: EngineRequest, signal: AbortSignal): Promise<EngineReply> {
    const { task = '' } = request.path;
    const number = ownNumber(task);
    if (number === undefined) {
      const path = `/_tasks/${encodeURIComponent(task)}`;
      const query = Object.fromEntries(Object.entries(request.query).filter(([name]) => name !== 'detailed'));
      return replyOf(await this.#work.transport.ask({ method: 'GET', path, query, signal }));
    }
    const waits = isSet(request.query['wait_for_completion']);
    const deadline = Date.now() + (millis(request.query['timeout']) ?? DEFAULT_WAIT_MS);
    for (;;) {
      const kept = await this.#store.read(number);
      if (kept === undefined) throw missing(task);
      if (kept.record.end !== undefined || !waits) return json(200, view(kept.record));
      if (Date.now() >= deadline)
        throw refusal(429, 'timeout_exception', `Timed out waiting for completion of [${task}]`);
      if (signal.aborted) throw signal.reason as Error;
      await sleep(LOOK_MS);
    }
  }

  async #list(request: EngineRequest): Promise<EngineReply> {
    const answered = await this.#work.transport.ask({ method: 'GET', path: '/_tasks', query: request.query });
    const { group_by: group = 'nodes', actions, nodes, parent_task_id: parent } = request.query;
    if (answered.status !== 200 || (nodes !== undefined && nodes !== TASK_NODE) || parent !== undefined)
      return replyOf(answered);
    const wanted = actions?.split(',');
    const own = (await this.#store.open())
      .filter(({ record }) => wanted === undefined || wanted.some((it) => matchesGlob(it, record.action)))
      .map(({ record }) => (view(record) as { task: object }).task);
    if (own.length === 0) return replyOf(answered);
    const found = parseAnswer(answered.body) as { nodes?: object; tasks?: object };
    const byId = Object.fromEntries(own.map((task) => [`${TASK_NODE}:${String((task as { id: number }).id)}`, task]));
    if (group === 'nodes') {
      return json(200, { ...found, nodes: { ...found.nodes, [TASK_NODE]: { name: TASK_NODE, tasks: byId } } });
    }
    const tasks = Array.isArray(found.tasks) ? [...(found.tasks as unknown[]), ...own] : { ...found.tasks, ...byId };
    return json(200, { ...found, tasks });
  }

  async #cancel(request: EngineRequest): Promise<EngineReply> {
    const { task = '' } = request.path;
    const number = ownNumber(task);
    if (number === undefined) {
      const path = `/_tasks/${encodeURIComponent(task)}/_cancel`;
      return replyOf(await this.#work.transport.ask({ method: 'POST', path, query: request.query }));
    }
    for (;;) {
      const kept = await this.#store.read(number);
      if (kept === undefined || kept.record.end !== undefined) throw missing(task);
      const record = { ...kept.record, cancelled: 'by user request' };
      try {
        await this.#store.save(record, kept.owner, kept.version);
      } catch (error) {
        if (error instanceof Conflict) continue;
        throw error;
      }
      const shown = (view(record) as { task: object }).task;
      return json(200, { nodes: { [TASK_NODE]: { name: TASK_NODE, tasks: { [task]: shown } } } });
    }
  }

  /** The format of an index is the cluster's business: there is nothing of Sparrow's to rewrite, and the task is done at once. */
  async #upgrade(request: EngineRequest): Promise<EngineReply> {
    const { transport, names } = this.#work;
    const { index = '' } = request.path;
    if (isPattern(index) || index.includes(',')) {
      throw illegal(`indices must be upgraded one at a time, but [${index}] may stand for several`);
    }
    await names.check(request, [index]);
    const found = await transport.ask({ method: 'GET', path: `/${encodeURIComponent(index)}/_settings` });
    if (found.status !== 200) return replyOf(found);
    const now = Date.now();
    const record: TaskRecord = {
      format: 1,
      number: now,
      action: UPGRADE,
      description: `upgrade [${index}]`,
      start: now,
      end: now,
      opaqueId: request.opaqueId,
      request: '{}',
      query: request.query,
      shards: [],
      tally: newTally(),
      failures: [],
    };
    if (request.query['wait_for_completion'] !== 'false') return json(200, response(record));
    return json(200, { task: `${TASK_NODE}:${String((await this.#create(record)).number)}` });
  }

  /** `_delete_by_query` and `_update_by_query` are the cluster's own, with their queries in the cluster's form. */
  async #byQuery(request: EngineRequest, bytes: Uint8Array | undefined, cancel?: Cancel): Promise<EngineReply> {
    const { transport, names, semantic, finals, dynamic } = this.#work;
    const expression = await names.expression(request, request.path['index']);
    if (expression === undefined) throw illegal(`[${request.path['index'] ?? ''}] stands for no index`);
    const isUpdate = request.op === 'update_by_query';
    const pipelines = isUpdate ? await pipelinesOf(this.#work.transport, request, expression) : {};
    let sent: Uint8Array | string | undefined = bytes;
    let warnings: readonly string[] = [];
    if (bytes !== undefined && bytes.length > 0) {
      const read = await readSearch(this.#work, request, expression, decode(bytes), cancel);
      if (isUpdate && read.value('script') !== undefined && (await dynamic.mayBringAny(expression)))
        throw notOverCluster(`a script of an _update_by_query ${WITH_TEMPLATES}`, 'use a [pipeline] with it');
      [sent, warnings] = [read.translated(), read.warnings];
    }
    const isThrough = isUpdate && (Object.keys(pipelines).length > 0 || (await finals.hasAny(expression)));
    if (isUpdate && (isThrough || (await semantic.of(expression)) !== undefined)) {
      // The cluster knows no pipeline, and would write the documents without their passages.
      const plan = planInPlace(expression, typeof sent === 'string' ? sent : '{}', request, pipelines, isThrough);
      const description = `update-by-query [${request.path['index'] ?? ''}]`;
      const reply = await this.#asTask(request, plan, 'indices:data/write/update/byquery', description);
      return withWarnings(reply, warnings);
    }
    const path = `/${encodeExpression(expression)}/${isUpdate ? '_update_by_query' : '_delete_by_query'}`;
    const query = isUpdate ? { ...request.query, pipeline: '_none' } : request.query;
    return withWarnings(replyOf(await transport.ask({ method: 'POST', path, query, body: sent })), warnings);
  }
}

/** The number of a task of Sparrow's; undefined for one of the cluster's. */
function ownNumber(task: string): number | undefined {
  const [, number] = new RegExp(`^${TASK_NODE}:(\\d{1,15})$`).exec(task) ?? [];
  return number === undefined ? undefined : Number(number);
}

function missing(task: string): Error {
  const reason = `task [${task}] isn't running and hasn't stored its results`;
  return refusal(404, 'resource_not_found_exception', reason);
}

/** The task is not to go on. */
class Ended extends Error {}

function causeOf(error: unknown): object {
  if (!(error instanceof EngineError)) return { type: 'exception', reason: String(error), status: 500 };
  const { type, reason } = error.members;
  return { type, reason, status: error.status };
}

function refusalOf(error: unknown): Error {
  const { type, reason, status } = error as { type: string; reason: string; status: number };
  return refusal(status, type, reason);
}

function json(status: number, body: object): EngineReply {
  return { status, body: Buffer.from(JSON.stringify(body)) };
}

/** A time such as `30s` in milliseconds. */
function millis(text: string | undefined): number | undefined {
  const [, number, unit = ''] = /^(\d+)(ms|s|m|h|d)$/.exec(text ?? '') ?? [];
  const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  return number === undefined ? undefined : Number(number) * (units[unit] ?? 1);
}

function later(): Promise<TaskRecord> {
  return new Promise(() => undefined);
}
