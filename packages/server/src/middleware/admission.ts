import type { Place } from '../http/admission.js';
import type { Answer } from '../http/respond.js';
import type { Endpoint } from '../routes/types.js';
import type { Call } from './call.js';

/**
 * Gives a read its place among those that are under way. Needs nothing, adds nothing; what comes back is left when the request is answered.
 *
 * @throws {HttpError} 429 when it would wait too long
 */
export function takePlace({ application }: Call, endpoint: Endpoint): Place | undefined {
  return application.admission.admit(operationOf(endpoint));
}

/** Tells the admission of reads that the engine had no room for one. Needs the answer, adds nothing. */
export function noteRejection({ application }: Call, endpoint: Endpoint, answer: Answer): void {
  if (isRejected(answer)) application.admission.refused(operationOf(endpoint));
}

/**
 * Takes room for the answer to a read until it is sent. Needs `endpoint`, adds to `hold`. What tells of a change is given whether there is
 * room or not, and so is what tells of the server itself.
 *
 * @throws {HttpError} 429 when there is no room
 */
export function takeRoom({ hold }: Call, endpoint: Endpoint, { body }: Answer): void {
  const isRead = endpoint.cancellable ?? ('engine' in endpoint.handler && endpoint.method === 'GET');
  if (isRead) hold.takeAnswer(body?.length ?? 0);
}

function operationOf({ handler }: Endpoint): string {
  return 'engine' in handler ? handler.engine : '';
}

const NO_ROOM_FOR_READS = Buffer.from('rejected execution: search has');

/**
 * Whether the engine had no room for the read among those that wait. One that is too large itself, or whose model has too much to do, is
 * another matter: others may be answered.
 */
function isRejected({ status, body }: Answer): boolean {
  if (status !== 429 || !(body instanceof Uint8Array)) return false;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(NO_ROOM_FOR_READS);
}
