import { Worker } from 'node:worker_threads';

import { HttpError } from '../errors.js';
import { FairQueue, type Sender } from './fair-queue.js';
import type { YamlReply } from './yaml-worker.js';

/** Longest body in YAML: reading it takes far longer than reading JSON does. */
const MAX_BODY = 1024 * 1024;

/** Longest body that is read beside the others: a search is rarely longer. */
const SHORT = 32 * 1024;

/** How long reading one body may take. */
const MAX_MS = 5000;

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
class YamlThread {
  readonly #queue = new FairQueue({
    what: 'bodies in YAML',
    advice: 'send it later, or as JSON',
    ofCaller: MAX_OF_CALLER,
    together: MAX_WAITING,
  });
  #thread: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** @throws {HttpError} 429 when too many wait, 400 when the client left before its turn */
  read(bytes: Uint8Array, sender: Sender): Promise<YamlReply> {
    return this.#queue.run(sender, () => this.#read(bytes));
  }

  #read(bytes: Uint8Array): Promise<YamlReply> {
    clearTimeout(this.#idle);
    return new Promise((resolve) => {
      const worker = (this.#thread ??= started());
      const end = (reply: YamlReply, lives: boolean): void => {
        clearTimeout(late);
        worker.removeAllListeners('message');
        worker.removeAllListeners('error');
        if (lives) {
          this.#idle = setTimeout(() => {
            this.#stop();
          }, IDLE_MS).unref();
        } else {
          this.#stop();
        }
        resolve(reply);
      };
      const late = setTimeout(() => {
        end({ problem: 'the body takes too long to read: send it as JSON' }, false);
      }, MAX_MS);
      worker.once('message', (reply: YamlReply) => {
        end(reply, true);
      });
      worker.once('error', (error) => {
        end({ problem: String(error) }, false);
      });
      worker.postMessage(bytes);
    });
  }

  #stop(): void {
    void this.#thread?.terminate();
    this.#thread = undefined;
  }
}

/** Those that are read in milliseconds do not wait for one that takes seconds. */
const short = new YamlThread();
const long = new YamlThread();

function started(): Worker {
  const worker = new Worker(new URL('./yaml-worker.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  worker.unref();
  return worker;
}

function malformed(problem: string): HttpError {
  return new HttpError('json', `[1:1] ${problem}`, { causedBy: { type: 'mark_yaml_exception', reason: problem } });
}
