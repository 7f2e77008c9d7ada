import { readFile, readdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { HttpError } from '@sparrow-search/endpoints';

import { HOST, NAME, type NodeContext, TRANSPORT, isHere } from './common.js';

/** Clock ticks in a second, as Linux counts the time of threads. */
const TICKS = 100;

/** Longest interval between two looks, in milliseconds. */
const LONGEST = 10_000;

/** A thread, and the ticks that it has been on a processor. */
interface Thread {
  readonly name: string;
  readonly user: number;
  readonly system: number;
  readonly state: string;
}

/**
 * Text of `GET /_nodes/hot_threads`: the threads that used the processor most while the request waited, by name. Their stacks are
 * not shown: most of them run machine code that tells nothing of itself.
 */
export async function hotThreads(
  context: NodeContext,
  path: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>>,
): Promise<string> {
  const { node } = await context.ask('node_indices', { metric: 'docs' }, {});
  if (!isHere(path['node_id'], String(node))) return '';
  const interval = intervalOf(query['interval']);
  const most = Number(query['threads'] ?? 3);
  const skipsIdle = query['ignore_idle_threads'] !== 'false';
  const began = performance.now();
  const before = await threads();
  await sleep(interval);
  const after = await threads();
  const millis = performance.now() - began;
  const lines = [
    `::: {${NAME}}{${String(node)}}{${HOST}}{${TRANSPORT}}`,
    `   Hot threads at ${new Date().toISOString()}, interval=${String(interval)}ms, busiestThreads=${String(most)}, ` +
      `ignoreIdleThreads=${String(skipsIdle)}:`,
  ];
  if (after.size === 0) lines.push('   this system does not tell of threads');
  const hot = [...after]
    .map(([id, { name, user, system, state }]) => {
      const then = before.get(id) ?? { user: 0, system: 0 };
      const spent = ((user - then.user + system - then.system) * 1000) / TICKS;
      return { id, name, state, spent, system: ((system - then.system) * 1000) / TICKS };
    })
    .filter(({ spent, state }) => !skipsIdle || spent > 0 || state === 'D')
    .sort((a, b) => b.spent - a.spent || Number(a.id) - Number(b.id))
    .slice(0, most);
  for (const { name, spent, system, state, id } of hot) {
    const share = (time: number): string => ((time * 100) / millis).toFixed(1);
    lines.push(
      '',
      `   ${share(spent)}% [cpu=${share(spent)}%, system=${share(system)}%] (${spent.toFixed(0)}ms out of ${millis.toFixed(0)}ms) ` +
        `cpu usage by thread '${name}' [${id}]${state === 'D' ? ' (waiting for the disk)' : ''}`,
    );
  }
  return `${lines.join('\n')}\n\n`;
}

function intervalOf(text = '500ms'): number {
  const [, digits = '', unit = ''] = /^(\d+)(ms|s)$/.exec(text) ?? [];
  const millis = Number(digits) * (unit === 's' ? 1000 : 1);
  if (unit === '' || millis > LONGEST) {
    throw new HttpError(
      'illegal_argument',
      `[interval] must be a time in [ms] or [s] of at most [${String(LONGEST)}ms], not [${text}]`,
    );
  }
  return millis;
}

/** The threads of this process by their number; none where the system does not tell. */
async function threads(): Promise<Map<string, Thread>> {
  const found = new Map<string, Thread>();
  let ids: string[];
  try {
    ids = await readdir('/proc/self/task');
  } catch {
    return found;
  }
  await Promise.all(
    ids.map(async (id) => {
      try {
        const line = await readFile(`/proc/self/task/${id}/stat`, 'utf8');
        // The name stands in parentheses, and may have some of its own.
        const [start, end] = [line.indexOf('('), line.lastIndexOf(')')];
        const fields = line.slice(end + 2).split(' ');
        const [state = '', user, system] = [fields[0], Number(fields[11]), Number(fields[12])];
        found.set(id, { name: line.slice(start + 1, end), user, system, state });
      } catch {
        // It has ended meanwhile.
      }
    }),
  );
  return found;
}
