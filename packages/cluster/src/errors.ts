import { EngineError } from '@sparrow-search/engine';

/** An error as bodies hold it. */
export interface Cause {
  readonly type: string;
  readonly reason: string;
}

/** A refusal in the documented shape. */
export function refusal(status: number, type: string, reason: string, causedBy?: unknown): EngineError {
  const cause: Cause = { type, reason };
  const error = { root_cause: [cause], ...cause, ...(causedBy === undefined ? {} : { caused_by: causedBy }) };
  return new EngineError(status, Buffer.from(JSON.stringify({ error, status })));
}

/** 400 for a request that can be understood and not be carried out. */
export function illegal(reason: string): EngineError {
  return refusal(400, 'illegal_argument_exception', reason);
}

/** 400 for what only the native engine does; `what` is named as the request has it. */
export function notOverCluster(what: string, instead?: string): EngineError {
  return illegal(`${what} is not available over a cluster${instead === undefined ? '' : `: ${instead}`}`);
}

/** 400 for a body that is no JSON of the form that is wanted. */
export function unparsable(reason: string): EngineError {
  return refusal(400, 'parsing_exception', reason);
}
