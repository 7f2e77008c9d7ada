import { Worker } from 'node:worker_threads';

import { HttpError } from '../errors.js';
import type { YamlReply } from './yaml-worker.js';

/** Longest body in YAML: reading it takes far longer than reading JSON does. */
const MAX_BODY = 1024 * 1024;

/** How long reading one body may take. */
const MAX_MS = 5000;

/** Most bodies that wait for the thread: of one caller, with the one that is being read, and of all together. */
const MAX_OF_CALLER = 8;
const MAX_WAITING = 100;

/** How long the thread stays when there is nothing to read. */
const IDLE_MS = 60_000;

/** Who sent a body in YAML. */
export interface YamlSender {
  /** Those with the same name take their turns together. */
  readonly caller: string;
  /** Calls back once the client has left; the function that comes back ends that. */
  readonly onGone: (callback: () => void) => () => void;
}

/**
 * A body in YAML as JSON, read on a thread of its own. Callers take turns: how long a body waits depends on how many callers there are,
 * and not on how much one of them sends.
 *
 * @throws {HttpError} 400 when it is not YAML, holds what JSON cannot, or is too deep or too long, or when its client has left; 429 when
 *   too many wait, of this caller or altogether
 */
export async function yamlToJson(bytes: Uint8Array, { caller, onGone }: YamlSender): Promise<Uint8Array> {
  if (bytes.length > MAX_BODY) {
    throw new HttpError(
      'illegal_argument',
      `a body in YAML may have up to [${String(MAX_BODY)}] bytes, but has [${String(bytes.length)}]: send it as JSON`,
    );
  }
  const own = waiting.get(caller) ?? [];
  if (own.length >= MAX_OF_CALLER || count >= MAX_WAITING) {
    const whose = own.length >= MAX_OF_CALLER ? 'of this caller ' : '';
    const many = String(whose === '' ? count : own.length);
    throw new HttpError(
      'rejected',
      `rejected execution: [${many}] bodies in YAML ${whose}wait to be read: send it later, or as JSON`,
    );
  }
  const reply = await new Promise<YamlReply>((resolve, reject) => {
    const body: Body = { bytes, resolve };
    waiting.set(caller, own);
    own.push(body);
    count += 1;
    const stay = onGone(() => {
      // What is being read keeps its place until that is over: whoever leaves and comes back has no more than others.
      if (body !== current) leave(caller, body);
      reject(new HttpError('client_closed', 'the client went away before its body was read'));
    });
    body.resolve = (result) => {
      stay();
      resolve(result);
    };
    if (current === undefined) void readAll();
  });
  if ('problem' in reply) throw malformed(reply.problem);
  return reply.json;
}

interface Body {
  readonly bytes: Uint8Array;
  resolve: (reply: YamlReply) => void;
}

/** The bodies of each caller, with the one that is being read; the caller whose turn it is comes first. */
const waiting = new Map<string, Body[]>();
let count = 0;
let current: Body | undefined;
let thread: Worker | undefined;
let idle: NodeJS.Timeout | undefined;

async function readAll(): Promise<void> {
  for (const [caller, bodies] of waiting) {
    // No list is empty.
    const [body] = bodies as [Body];
    current = body;
    const reply = await read(body.bytes).catch((error: unknown) => ({ problem: String(error) }));
    current = undefined;
    leave(caller, body);
    // Those that came meanwhile go before the next one of this caller: a map is walked through to what was added last.
    if (waiting.delete(caller)) waiting.set(caller, bodies);
    body.resolve(reply);
  }
}

function leave(caller: string, body: Body): void {
  const bodies = waiting.get(caller) ?? [];
  bodies.splice(bodies.indexOf(body), 1);
  count -= 1;
  if (bodies.length === 0) waiting.delete(caller);
}

function read(bytes: Uint8Array): Promise<YamlReply> {
  clearTimeout(idle);
  return new Promise((resolve) => {
    const worker = (thread ??= started());
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
    worker.postMessage(bytes);
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
