// Tasks: what runs, how far it is, and how to stop it.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { call, optional } from '../lib/api';
import { count, duration, when } from '../lib/format';
import { useLoad } from '../lib/load';
import { Head, Note, Problem, Progress, Raw, Sure } from '../shell/parts';

interface Task {
  readonly node: string;
  readonly id: number;
  readonly action: string;
  readonly description?: string;
  readonly start_time_in_millis: number;
  readonly running_time_in_nanos: number;
  readonly cancellable: boolean;
  readonly cancelled?: boolean;
  readonly status?: Readonly<Record<string, unknown>>;
}

/** A task that has ended, and what it did. */
interface Past {
  readonly task: Task;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
}

const WATCH_MS = 1000;

/** The page's own question is a task as well. */
const OURS = 'cluster:monitor/tasks/lists';

export function TasksScreen(): JSX.Element {
  const [ended, setEnded] = useState<readonly Past[]>([]);
  const [failure, setFailure] = useState('');
  const {
    value: running,
    error,
    reload,
  } = useLoad(
    async () => {
      const { tasks } = await call<{ tasks: Task[] }>('GET', '/_tasks?detailed=true&group_by=none');
      setEnded((await optional<{ tasks: Past[] }>({ tasks: [] }, 'GET', '/_ext/tasks')).tasks);
      return tasks.filter(({ action }) => !action.startsWith(OURS));
    },
    [],
    WATCH_MS,
  );
  const cancel = (task: Task): void => {
    call('POST', `/_tasks/${nameOf(task)}/_cancel`).then(reload, (reason: unknown) => {
      setFailure((reason as Error).message);
    });
  };
  return (
    <>
      <Head title="Tasks" />
      <p class="intro">
        Reindexing, updates and deletions by query, upgrades and other long work. A restart interrupts a task, which
        then continues by itself.
      </p>
      <Problem text={error ?? failure} />
      {running?.length === 0 && <Note>No task is running.</Note>}
      <ul class="tasks">
        {running?.map((task) => (
          <TaskCard
            key={nameOf(task)}
            task={task}
            onCancel={() => {
              cancel(task);
            }}
          />
        ))}
      </ul>
      {ended.length > 0 && (
        <section>
          <h2>History</h2>
          <p class="small">The latest background tasks that have ended.</p>
          <ul class="tasks">
            {ended.map((past) => (
              <Ended key={nameOf(past.task)} past={past} />
            ))}
          </ul>
        </section>
      )}
      <Lookup />
    </>
  );
}

function nameOf({ node, id }: Task): string {
  return `${node}:${id}`;
}

/** Some tasks have an empty description. */
function titleOf({ description = '', action }: Task): string {
  return description === '' ? action : description;
}

function number(status: Task['status'], name: string): number {
  const value = status?.[name];
  return typeof value === 'number' ? value : 0;
}

function doneOf({ status }: Task): number {
  return ['created', 'updated', 'deleted', 'noops', 'version_conflicts'].reduce(
    (all, name) => all + number(status, name),
    0,
  );
}

function TaskCard({ task, onCancel }: { readonly task: Task; readonly onCancel: () => void }): JSX.Element {
  const total = number(task.status, 'total');
  const done = doneOf(task);
  const seconds = task.running_time_in_nanos / 1e9;
  return (
    <li class="task">
      <div class="one-head">
        <h2>{titleOf(task)}</h2>
        {task.cancelled === true ? (
          <span>stopping</span>
        ) : (
          task.cancellable && <Sure label="Cancel" question="Stop it?" onYes={onCancel} />
        )}
      </div>
      <p class="small">
        <code>{nameOf(task)}</code> · {task.action} · since {when(task.start_time_in_millis)},{' '}
        {duration(seconds * 1000)}
      </p>
      {total > 0 && (
        <>
          <Progress done={done} total={total} label={`${task.description ?? task.action}: documents done`} />
          <p class="small">
            {count(done)} of {count(total)}, {count(seconds > 0 ? done / seconds : 0)} a second
            {number(task.status, 'version_conflicts') > 0
              ? `, ${count(number(task.status, 'version_conflicts'))} conflicts`
              : ''}
          </p>
        </>
      )}
    </li>
  );
}

function Ended({ past: { task, response, error } }: { readonly past: Past }): JSX.Element {
  return (
    <li class="task">
      <div class="one-head">
        <h2>{titleOf(task)}</h2>
        <span class={error === undefined ? '' : 'bad'}>{error === undefined ? 'done' : 'failed'}</span>
      </div>
      <p class="small">
        <code>{nameOf(task)}</code> · begun {when(task.start_time_in_millis)}, took{' '}
        {duration(task.running_time_in_nanos / 1e6)}
      </p>
      {response !== undefined && (
        <p class="small">
          {['total', 'created', 'updated', 'deleted']
            .map((name) => `${name} ${count(number(response, name))}`)
            .join(', ')}
        </p>
      )}
      <Raw title="What it answered" value={error ?? response} />
    </li>
  );
}

/** Results of ended tasks are kept; they are found by the id that the task was started with. */
function Lookup(): JSX.Element {
  const [id, setId] = useState('');
  const [found, setFound] = useState<unknown>();
  const [error, setError] = useState('');
  const look = (): void => {
    call('GET', `/_tasks/${encodeURIComponent(id.trim())}`).then(
      (answer) => {
        setFound(answer);
        setError('');
      },
      (failure: unknown) => {
        setFound(undefined);
        setError((failure as Error).message);
      },
    );
  };
  return (
    <form
      class="lookup"
      onSubmit={(event) => {
        event.preventDefault();
        look();
      }}
    >
      <label class="field">
        <span>Id of a task that has ended</span>
        <input
          value={id}
          required
          spellcheck={false}
          placeholder="node:number"
          onInput={(event) => {
            setId(event.currentTarget.value);
          }}
        />
      </label>
      <button class="quiet">Look it up</button>
      <Problem text={error} />
      {found !== undefined && <Raw title="The task" value={found} open />}
    </form>
  );
}
