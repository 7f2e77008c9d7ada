import { Worker } from 'node:worker_threads';

import { HttpError } from '../errors.js';
import type { YamlReply } from './yaml-worker.js';

/** Longest body in YAML: reading it takes far longer than reading JSON does. */
const MAX_BODY = 1024 * 1024;

/** How long reading one body may take. */
const MAX_MS = 5000;

/** Most bodies that wait for the thread. */
const MAX_WAITING = 100;

/** How long the thread stays when there is nothing to read. */
const IDLE_MS = 60_000;

/**
 * A body in YAML as JSON, read on a thread of its own.
 *
 * @throws {HttpError} 400 when it is not YAML, holds what JSON cannot, or is too deep or too long
 */
export async function yamlToJson(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.length > MAX_BODY) {
    throw new HttpError(
      'illegal_argument',
      `a body in YAML may have up to [${String(MAX_BODY)}] bytes, but has [${String(bytes.length)}]: send it as JSON`,
    );
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed('Invalid UTF-8');
  }
  if (waiting >= MAX_WAITING) throw malformed('too many bodies in YAML wait to be read: send it as JSON');
  waiting += 1;
  // One after the other: there is one thread.
  const reply = last.then(() => read(text));
  last = reply.finally(() => {
    waiting -= 1;
  });
  const result = await reply;
  if ('problem' in result) throw malformed(result.problem);
  return new TextEncoder().encode(result.json);
}

let waiting = 0;
let last: Promise<unknown> = Promise.resolve();
let thread: Worker | undefined;
let idle: NodeJS.Timeout | undefined;

function read(text: string): Promise<YamlReply> {
  clearTimeout(idle);
  const worker = (thread ??= started());
  return new Promise((resolve) => {
    const end = (reply: YamlReply, lives: boolean): void => {
      clearTimeout(late);
      worker.removeAllListeners('message');
      worker.removeAllListeners('error');
      if (lives) {
        idle = setTimeout(stop, IDLE_MS).unref();
      } else {
        stop();
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
    worker.postMessage(text);
  });
}

function started(): Worker {
  const worker = new Worker(new URL('./yaml-worker.js', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  });
  worker.unref();
  return worker;
}

function stop(): void {
  void thread?.terminate();
  thread = undefined;
}

function malformed(problem: string): HttpError {
  return new HttpError('json', `[1:1] ${problem}`, { causedBy: { type: 'mark_yaml_exception', reason: problem } });
}
