import { setTimeout as sleep } from 'node:timers/promises';

import type { Command } from 'commander';

import { Context, type ServerOptions, interruptible, jsonOption, withServer } from '../context.js';
import { CommandError, UsageError } from '../errors.js';
import { commandName } from '../shell.js';
import { type Sink, duration, inLine, number, oneLine, table } from '../terminal.js';

interface Status {
  readonly total?: number;
  readonly created?: number;
  readonly updated?: number;
  readonly deleted?: number;
  readonly noops?: number;
  readonly filled?: number;
  readonly version_conflicts?: number;
}

interface Task {
  readonly node: string;
  readonly id: number;
  readonly action: string;
  readonly description: string;
  readonly running_time_in_nanos: number;
  readonly cancellable: boolean;
  readonly cancelled?: boolean;
  readonly status?: Status;
  readonly parent_task_id?: string;
}

interface Known {
  readonly completed: boolean;
  readonly task: Task;
  readonly error?: { readonly reason: string };
  readonly response?: unknown;
}

const POLL_MS = 500;

const NONE = 'no jobs run; --all shows those that have ended\n';

/** `sparrow tasks`: what the server is doing that takes its time. */
export function addTasks(program: Command): void {
  const tasks = program.command('tasks').description('list, show and cancel jobs, such as a reindex');

  withServer(
    tasks
      .command('list', { isDefault: true })
      .description('list the running jobs')
      .option('--all', 'also jobs that have ended, the latest first')
      .option('--watch', 'keep refreshing the list, until Ctrl-C'),
    jsonOption('a list of jobs, each as in the answer of GET /_tasks; with --all, of GET /_tasks/TASK'),
  ).action(async (options: ServerOptions & { all?: boolean; watch?: boolean }) => {
    if (options.all === true && options.watch === true) {
      throw new UsageError('--watch shows the jobs that run: leave out --all');
    }
    const context = new Context(options);
    if (options.all === true) {
      const running = (await list(context)).map((task): Known => ({ completed: false, task }));
      const ended = await context.remote.request<{ tasks: readonly Known[] }>('GET', '/_ext/tasks');
      const all = [...running, ...ended.tasks];
      context.show(all, (out) => (all.length === 0 ? 'no jobs\n' : withStates(out, all)));
      return;
    }
    if (options.watch !== true) {
      const running = await list(context);
      context.show(running, (out) => (running.length === 0 ? NONE : shown(out, running)));
      return;
    }
    await watchAll(context);
  });

  withServer(
    tasks
      .command('show')
      .description('show how far a job is, or its result')
      .argument('<task>', 'id of the job')
      .option('--watch', 'wait until it ends'),
    jsonOption('the answer of GET /_tasks/TASK'),
  ).action(async (id: string, options: ServerOptions & { watch?: boolean }) => {
    const context = new Context(options);
    const known = options.watch === true ? await watchOne(context, id) : await get(context, id);
    context.show(known, (out) => described(out, known));
    if (known.error !== undefined) throw new CommandError(`the task failed: ${known.error.reason}`);
  });

  withServer(
    tasks.command('cancel').description('ask a job to stop').argument('<task>', 'id of the job'),
    jsonOption('the answer of POST /_tasks/TASK/_cancel'),
  ).action(async (id: string, options: ServerOptions) => {
    mustBeId(id);
    const context = new Context(options);
    const answer = await context.remote.request<{
      nodes?: object;
      node_failures?: { reason?: string; caused_by?: { reason: string } }[];
    }>('POST', `/_tasks/${encodeURIComponent(id)}/_cancel`);
    const [failure] = answer.node_failures ?? [];
    if (failure !== undefined)
      throw new CommandError(failure.caused_by?.reason ?? failure.reason ?? 'it cannot be cancelled');
    context.show(answer, () => `${id} was asked to stop\n`);
  });
}

async function list({ remote }: Context, signal?: AbortSignal): Promise<Task[]> {
  const { nodes } = await remote.request<{
    nodes: Readonly<Record<string, { tasks: Readonly<Record<string, Task>> }>>;
  }>('GET', '/_tasks', { query: { detailed: true }, signal });
  const all = Object.values(nodes).flatMap(({ tasks }) => Object.values(tasks));
  // The request that asks is a task itself.
  return all.filter(({ action }) => !action.startsWith('cluster:monitor/tasks/'));
}

async function get({ remote }: Context, id: string, signal?: AbortSignal): Promise<Known> {
  mustBeId(id);
  return remote.request<Known>('GET', `/_tasks/${encodeURIComponent(id)}`, { query: { detailed: true }, signal });
}

/** @throws {UsageError} for what no task is called, such as a number alone */
function mustBeId(id: string): void {
  if (/^[^:]+:\d+$/.test(id)) return;
  throw new UsageError(
    `[${inLine(id)}] is not the id of a task, which is written as NODE:NUMBER: \`${commandName()} tasks list --all\` shows them`,
  );
}

/** Shows all jobs again and again; on a terminal in the same place. */
async function watchAll(context: Context): Promise<void> {
  const { out } = context.terminal;
  const { signal, done } = interruptible();
  let before = '';
  try {
    for (;;) {
      const running = await list(context, signal);
      const text = context.isJson ? `${JSON.stringify(running)}\n` : running.length === 0 ? NONE : shown(out, running);
      if (out.isTerminal && !context.isJson && before !== '')
        out.steer(`\u001b[${String(before.split('\n').length - 1)}A\u001b[J`);
      // A log of what stays the same helps nobody.
      if (out.isTerminal || text !== before) out.write(text);
      before = text;
      await sleep(POLL_MS, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    done();
  }
}

async function watchOne(context: Context, id: string): Promise<Known> {
  const { err } = context.terminal;
  const { signal, done } = interruptible();
  const { Progress } = await import('../progress.js');
  const progress = new Progress(err, 'document');
  try {
    for (;;) {
      const known = await get(context, id, signal);
      if (known.completed) return known;
      const { done: count, total } = countsOf(known.task);
      if (!context.isJson) progress.update(count, total > 0 ? count / total : undefined);
      await sleep(POLL_MS, undefined, { signal });
    }
  } catch (error) {
    if (signal.aborted) throw new CommandError('interrupted; the job goes on');
    throw error;
  } finally {
    progress.clear();
    done();
  }
}

function countsOf({ status = {} }: Task): { readonly done: number; readonly total: number } {
  const { total = 0, created = 0, updated = 0, deleted = 0, noops = 0, version_conflicts: conflicts = 0 } = status;
  // A change of model counts documents that it gave a new vector.
  const { filled = 0 } = status;
  return { done: created + updated + deleted + noops + conflicts + filled, total };
}

const HEADING = ['task', 'job', 'done', 'of', 'running for', 'what'];

function shown(out: Sink, tasks: readonly Task[]): string {
  return table(out, HEADING, tasks.map(cellsOf), 'done of');
}

/** As {@link shown}, for jobs that may have ended. */
function withStates(out: Sink, all: readonly Known[]): string {
  const rows = all.map((one) => [
    ...cellsOf(one.task).slice(0, -1),
    stateOf(out, one),
    oneLine(one.task.description, 60),
  ]);
  return table(out, [...HEADING.slice(0, -2), 'took', 'state', 'what'], rows, 'done of');
}

function cellsOf(task: Task): readonly string[] {
  const { done, total } = countsOf(task);
  const counted = task.status?.total !== undefined;
  return [
    `${task.node}:${String(task.id)}`,
    task.action.split('/').at(-1) ?? '',
    counted ? number(done) : '',
    counted ? number(total) : '',
    duration(task.running_time_in_nanos / 1e6),
    oneLine(task.description, 60),
  ];
}

function stateOf(out: Sink, { completed, task, error }: Known): string {
  if (error !== undefined) return out.bad('failed');
  if (!completed) return 'running';
  return task.cancelled === true ? 'cancelled' : out.good('completed');
}

function described(out: Sink, known: Known): string {
  const { task, response } = known;
  const result = response === undefined ? '' : `${JSON.stringify(response, null, 2)}\n`;
  return `${shown(out, [task])}${stateOf(out, known)}\n${result}`;
}
