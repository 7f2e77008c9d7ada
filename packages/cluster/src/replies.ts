import type { Cancel, EngineReply } from '@sparrow-search/engine';

import { refusal } from './errors.js';
import { parseAnswer } from './json.js';
import { type Answered, cancelled } from './transport.js';

/** The cluster's answer as an engine's. */
export function replyOf({ status, body, text }: Answered): EngineReply {
  return { status, body, text };
}

/** An error of the cluster's. */
interface ClusterError {
  readonly type?: string;
  readonly reason?: string;
  readonly caused_by?: unknown;
  readonly root_cause?: readonly { readonly type?: string }[];
}

/** An error of the cluster's, as an engine throws it. */
export function passedOn({ status, body }: Pick<Answered, 'status' | 'body'>): Error {
  const { error } = parseAnswer(body) as { error?: ClusterError };
  const found: ClusterError = typeof error === 'object' ? error : {};
  const { type = 'exception', reason = 'the cluster refused a request', caused_by: cause } = found;
  // `all shards failed` alone tells nobody what to do.
  const [root] = found.root_cause ?? [];
  return refusal(status, type, reason, cause ?? (root?.type === type ? undefined : root));
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
