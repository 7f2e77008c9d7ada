// Tasks that ended, as this browser has seen them: the server keeps what each answered, and lists only those that run.

/** What is kept of a task. */
export interface Past {
  readonly name: string;
  readonly title: string;
  /** When it was started, in milliseconds. */
  readonly begun: number;
}

interface Kept {
  readonly running: readonly Past[];
  readonly ended: readonly Past[];
}

const PLACE = 'sparrow-tasks';
const MOST = 50;

/** The tasks that ended, the latest first, once it is known which ones run now; those that ended while nobody looked are among them. */
export function endedWith(now: readonly Past[], storage: Storage = localStorage): readonly Past[] {
  const { running, ended } = read(storage);
  const open = new Set(now.map(({ name }) => name));
  const gone = running.filter(({ name }) => !open.has(name));
  const kept = [...gone, ...ended.filter(({ name }) => !open.has(name))].slice(0, MOST);
  try {
    storage.setItem(PLACE, JSON.stringify({ running: now, ended: kept } satisfies Kept));
  } catch {
    // A browser may keep nothing: then it is known as long as the page is open, or not at all.
  }
  return kept;
}

function read(storage: Storage): Kept {
  try {
    const { running, ended } = JSON.parse(storage.getItem(PLACE) ?? '') as Partial<Record<keyof Kept, unknown>>;
    return { running: Array.isArray(running) ? running : [], ended: Array.isArray(ended) ? ended : [] };
  } catch {
    return { running: [], ended: [] };
  }
}
