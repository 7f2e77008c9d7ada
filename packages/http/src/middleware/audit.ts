import type { Answer } from '../exchange/respond.js';
import { claimedKey } from '../security/authenticate.js';
import type { Call } from './call.js';

/** Writes down who asked for what, and whether it was allowed. Needs the answer and whatever is known of the request, adds nothing. */
export function audit(
  { application, exchange, path, caller, endpoint, named, requestId }: Call,
  { status, refusedParts }: Answer,
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
    allowed: !refused && (refusedParts === true ? 'in part' : true),
    requestId,
    ...(opaqueId === undefined ? {} : { opaqueId }),
  });
}
