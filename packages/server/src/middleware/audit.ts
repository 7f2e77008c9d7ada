import type { Answer } from '../http/respond.js';
import { type Action, COMPOSITE } from '../security/actions.js';
import { claimedKey } from '../security/authenticate.js';
import type { ApiKey } from '../security/key-store.js';
import type { Call } from './call.js';

/** Writes down who asked for what, and whether it was allowed. Needs the answer and whatever is known of the request, adds nothing. */
export function audit(
  { application, exchange, path, caller, endpoint, named, requestId }: Call,
  { status, body }: Answer,
): void {
  if (application.audit === undefined || endpoint?.action === 'public') return;
  const action = endpoint?.action ?? undefined;
  const claimed = caller === undefined ? claimedKey(exchange.header('authorization')) : undefined;
  const opaqueId = exchange.header('x-opaque-id');
  const inPath = new Set((path['index'] ?? '').split(','));
  const refused = status === 401 || status === 403 || (status === 429 && caller === undefined);
  application.audit.write({
    ...(caller === undefined ? {} : { key: caller }),
    ...(claimed === undefined ? {} : { claimed }),
    ...(action === undefined ? {} : { action }),
    method: exchange.method,
    path: exchange.path,
    ...(path['index'] === undefined ? {} : { indices: path['index'] }),
    ...(named.every((name) => inPath.has(name)) ? {} : { named }),
    from: exchange.from,
    status,
    allowed: !refused && (hasRefusedParts(action, caller, body) ? 'in part' : true),
    requestId,
    ...(opaqueId === undefined ? {} : { opaqueId }),
  });
}

const REFUSED_PART = Buffer.from('"security_exception"');

/** Whether parts of a request that was carried out were refused. */
function hasRefusedParts(action: Action | undefined, caller: ApiKey | undefined, body: Answer['body']): boolean {
  if (action === undefined || !COMPOSITE.has(action)) return false;
  if (caller === undefined || caller.owner || !(body instanceof Uint8Array)) return false;
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).includes(REFUSED_PART);
}
