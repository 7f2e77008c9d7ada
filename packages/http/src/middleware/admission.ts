import type { Endpoint, LocalOperation } from '@sparrow-search/endpoints';
import { EngineError, OPERATIONS } from '@sparrow-search/engine';

import type { Place } from '../exchange/admission.js';
import type { Answer } from '../exchange/respond.js';
import { rootOf } from '../security/key-store.js';
import type { Call } from './call.js';

/**
 * Gives a read its place among those that are under way. Needs nothing, adds nothing; what comes back is left when the request is answered.
 *
 * @throws {HttpError} 429 when it would wait too long
 */
export function takePlace({ application, caller }: Call, endpoint: Endpoint): Place | undefined {
  return application.admission.admit(operationOf(endpoint), caller && rootOf(caller));
}

/**
 * Tells the admission of reads that the engine had no room for one among those that wait. Needs what was thrown, adds nothing. One that is
 * too large itself, or whose model has too much to do, is another matter: others may be answered.
 */
export function noteRejection({ application }: Call, endpoint: Endpoint, error: unknown): void {
  if (error instanceof EngineError && error.isFull) application.admission.refused(operationOf(endpoint));
}

/**
 * Takes room for the answer to a read until it is sent, unless that was done while it was made. Needs `endpoint`, adds to `hold`. What
 * tells of a change is given whether there is room or not, and so is what an operator asks for where there is no room.
 *
 * @throws {HttpError} 429 when there is no room
 */
export function takeRoom({ hold, caller }: Pick<Call, 'hold' | 'caller'>, endpoint: Endpoint, answer: Answer): void {
  if (answer.isHeld === true) return;
  const { handler, method, cancellable } = endpoint;
  const isRead =
    'engine' in handler
      ? method === 'GET' || OPERATIONS[handler.engine].reads
      : !ALWAYS_TOLD.has(handler.local) && (method === 'GET' || cancellable === true);
  if (isRead) hold.takeAnswer(answer.body?.length ?? 0, caller && rootOf(caller));
}

/**
 * An agent's tools may write, and changes of API keys take their room before they are made. The others say how the server does, in as many
 * bytes whatever is stored.
 */
const ALWAYS_TOLD: ReadonlySet<LocalOperation> = new Set<LocalOperation>([
  ...(['mcp', 'create_api_key', 'update_api_key', 'bulk_update_api_keys', 'invalidate_api_keys'] as const),
  ...(['metrics', 'health_report'] as const),
]);

function operationOf({ handler, leadsTo }: Endpoint): string {
  return 'engine' in handler ? handler.engine : (leadsTo ?? '');
}
