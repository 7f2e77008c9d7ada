// A control group of Linux that bounds a process' memory, as a container does: anonymous memory and the pages of the files it reads. And what
// decides how such pages come and go.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

import { filesIn } from './files.mjs';

/** Where the memory controller may be mounted: version 1, version 2. */
const HIERARCHIES = [
  { root: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', used: 'memory.max_usage_in_bytes' },
  { root: '/sys/fs/cgroup', limit: 'memory.max', used: 'memory.peak' },
];

/** A group with a limit, empty at first. */
export class MemoryGroup {
  #folder;
  #used;

  /**
   * @param {number} bytes at most
   * @returns {MemoryGroup | undefined} undefined where the system allows none: on another system than Linux, or without the right to
   */
  static open(bytes) {
    for (const { root, limit, used } of HIERARCHIES) {
      const folder = join(root, `sparrow-bench-${process.pid}`);
      if (!existsSync(root)) continue;
      try {
        mkdirSync(folder, { recursive: true });
        if (!existsSync(join(folder, limit))) {
          rmdirSync(folder);
          continue;
        }
        writeFileSync(join(folder, limit), String(bytes));
        return new MemoryGroup(folder, used);
      } catch {
        // Not ours to make.
      }
    }
    return undefined;
  }

  constructor(folder, used) {
    this.#folder = folder;
    this.#used = used;
  }

  /** A command and its arguments as a command that runs in the group from its first byte on. */
  around(command, args) {
    return ['sh', ['-c', 'echo $$ > "$0" && exec "$@"', join(this.#folder, 'cgroup.procs'), command, ...args]];
  }

  /** Most bytes that the group has used. */
  peak = () => Number(readFileSync(join(this.#folder, this.#used), 'utf8'));

  /** Removes the group, whose processes have ended. */
  close = () => rmdirSync(this.#folder);
}

/**
 * Forgets what the system keeps of a folder's files in memory: it would go on counting for the group that read or wrote it first.
 *
 * @param {string} folder whose files nothing has open
 */
export function forgetPages(folder) {
  for (const file of filesIn(folder)) {
    execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0', 'status=none']);
  }
}

/** Kilobytes that the system reads ahead on a folder's disk; undefined where it does not say. */
export function readAheadOf(folder) {
  const { dev } = statSync(folder);
  // As `makedev` packs them.
  const [major, minor] = [(dev >> 8) & 0xfff, (dev & 0xff) | ((dev >> 12) & 0xfff00)];
  // A partition has the settings of its disk.
  const queues = ['queue', join('..', 'queue')].map((queue) => join(realDevice(major, minor), queue, 'read_ahead_kb'));
  const file = queues.find((one) => existsSync(one));
  return file === undefined ? undefined : Number(readFileSync(file, 'utf8'));
}

function realDevice(major, minor) {
  const device = `/sys/dev/block/${major}:${minor}`;
  return existsSync(device) ? realpathSync(device) : device;
}
