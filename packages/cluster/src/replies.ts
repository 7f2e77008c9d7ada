import type { Cancel, EngineReply } from '@sparrow-search/engine';

import { refusal } from './errors.js';
import { parseAnswer } from './json.js';
import { type Answered, cancelled } from './transport.js';

/** The cluster's answer as an engine's. */
export function replyOf({ status, body, text }: Answered): EngineReply {
  return { status, body, text };
}

/** An error of the cluster's, as an engine throws it. */
export function passedOn({ status, body }: Pick<Answered, 'status' | 'body'>): Error {
  const { error } = parseAnswer(body) as { error?: { type?: string; reason?: string } };
  const {
    type = 'exception',
    reason = 'the cluster refused a request',
    ...more
  } = typeof error === 'object' ? error : {};
  return refusal(status, type, reason, (more as { caused_by?: unknown }).caused_by);
}

export function withWarnings(reply: EngineReply, warnings: readonly string[]): EngineReply {
  return warnings.length === 0 ? reply : { ...reply, warnings };
}

/** Does work that ends when the caller goes away. */
export async function stoppable<T>(cancel: Cancel | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const end = cancel?.(() => {
    controller.abort(cancelled());
  });
  try {
    return await work(controller.signal);
  } finally {
    end?.();
  }
}
