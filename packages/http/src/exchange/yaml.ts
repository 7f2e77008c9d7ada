import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

import { HttpError } from '@sparrow-search/endpoints';

import { FairQueue, type Sender } from './fair-queue.js';
import type { YamlReply } from './yaml-worker.js';

/** Longest body in YAML: reading it takes far longer than reading JSON does. */
const MAX_BODY = 1024 * 1024;

/** Longest body that is read beside the others: a search is rarely longer. */
const SHORT = 32 * 1024;

/** How long reading one body may take, in milliseconds of the processor, which it may have to share; and how long altogether. */
const MAX_MS = 5000;
const MAX_WAITED_MS = 60_000;

/** How much longer a body is read whose client has left, in milliseconds: another thread takes as long to start. */
const LEFT_MS = 100;

/** Most bodies that wait for a thread: of one caller, with the one that is being read, and of all together. */
const MAX_OF_CALLER = 8;
const MAX_WAITING = 100;

/** How long a thread stays when there is nothing to read. */
const IDLE_MS = 60_000;

/**
 * A body in YAML as JSON, read on a thread of its own, on which callers take turns: short bodies on one, longer ones on another.
 *
 * @throws {HttpError} 400 when it is not YAML, holds what JSON cannot, or is too deep or too long, or when its client has left; 429 when
 *   too many wait, of this caller or altogether
 */
export async function yamlToJson(bytes: Uint8Array, sender: Sender): Promise<Uint8Array> {
  if (bytes.length > MAX_BODY) {
    throw new HttpError(
      'illegal_argument',
      `a body in YAML may have up to [${String(MAX_BODY)}] bytes, but has [${String(bytes.length)}]: send it as JSON`,
    );
  }
  const reply = await (bytes.length <= SHORT ? short : long).read(bytes, sender);
  if ('problem' in reply) throw malformed(reply.problem);
  return reply.json;
}

/** A thread that reads bodies, one after the other. It is started when there is something to read. */
export class YamlThread {
  readonly #queue = new FairQueue({
    what: 'bodies in YAML',
    advice: 'send it later, or as JSON',
    ofCaller: MAX_OF_CALLER,
    together: MAX_WAITING,
  });
  #thread: Worker | undefined;
  /** The number of the thread, once it runs. */
  readonly #number = new Int32Array(new SharedArrayBuffer(4));
  #idle: NodeJS.Timeout | undefined;

  /**
   * @param most how long reading a body may take, in milliseconds
   * @param worked how long the thread of a number has had a processor, in milliseconds; undefined where the system does not tell
   */
  constructor(
    private readonly most = MAX_MS,
    private readonly worked = workedBy,
  ) {}

  /** @throws {HttpError} 429 when too many wait, 400 when the client left before its turn */
  read(bytes: Uint8Array, sender: Sender): Promise<YamlReply> {
    return this.#queue.run(sender, () => this.#read(bytes, sender));
  }

  #read(bytes: Uint8Array, { onGone }: Sender): Promise<YamlReply> {
    clearTimeout(this.#idle);
    return new Promise((resolve) => {
      const worker = (this.#thread ??= this.#start());
      const [begun, before] = [performance.now(), this.#worked()];
      let late: NodeJS.Timeout | undefined;
      const end = async (reply: YamlReply, lives: boolean): Promise<void> => {
        clearTimeout(late);
        stay();
        worker.removeAllListeners('message');
        worker.removeAllListeners('error');
        if (lives) {
          this.#idle = setTimeout(() => void this.#stop(), IDLE_MS).unref();
        } else {
          // The next body is read when this one is no more.
          await this.#stop();
        }
        resolve(reply);
      };
      const look = (): void => {
        const waited = performance.now() - begun;
        const [now, then] = [this.#worked(), before];
        const left = this.most - (now === undefined || then === undefined ? waited : now - then);
        if (left > 0 && waited < MAX_WAITED_MS) late = setTimeout(look, Math.ceil(left));
        else void end({ problem: 'the body takes too long to read: send it as JSON' }, false);
      };
      const stay = onGone(() => {
        clearTimeout(late);
        late = setTimeout(() => void end({ problem: 'the client went away' }, false), LEFT_MS);
      });
      worker.once('message', (reply: YamlReply) => void end(reply, true));
      worker.once('error', (error: NodeJS.ErrnoException) => {
        const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
        void end(
          { problem: isFull ? 'the body takes too much memory to read: send it as JSON' : String(error) },
          false,
        );
      });
      worker.postMessage(bytes);
      late = setTimeout(look, this.most);
    });
  }

  #worked(): number | undefined {
    return this.worked(this.#number[0] ?? 0);
  }

  #start(): Worker {
    // A thread that does not run yet has not worked.
    this.#number[0] = 0;
    const worker = new Worker(new URL('./yaml-worker.js', import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: 256 },
      workerData: this.#number,
    });
    worker.unref();
    return worker;
  }

  async #stop(): Promise<void> {
    const thread = this.#thread;
    this.#thread = undefined;
    await thread?.terminate();
  }
}

/** How long a thread of this process has had a processor, in milliseconds; nothing for one that is still to start. Only Linux tells. */
function workedBy(thread: number): number | undefined {
  if (process.platform !== 'linux') return undefined;
  if (thread === 0) return 0;
  try {
    return Number(readFileSync(`/proc/self/task/${String(thread)}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e6;
  } catch {
    return undefined;
  }
}

/** Those that are read in milliseconds do not wait for one that takes seconds. */
const short = new YamlThread();
const long = new YamlThread();

function malformed(problem: string): HttpError {
  return new HttpError('json', `[1:1] ${problem}`, { causedBy: { type: 'mark_yaml_exception', reason: problem } });
}
