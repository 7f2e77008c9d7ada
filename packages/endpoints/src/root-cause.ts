import type { SparrowError } from '@sparrow-search/engine';

interface Failure {
  readonly reason?: string;
  readonly suppressed?: readonly Failure[];
  readonly failed_shards?: readonly { readonly reason?: Failure }[];
}

/** What went wrong below an error that only says that something did: that all shards failed, or one of several retrievers. */
export function rootReason(error: SparrowError): string {
  const { error: told } = (error.body ?? {}) as { readonly error?: Failure };
  let reason = error.message;
  for (let at = below(told); at !== undefined; at = below(at)) reason = at.reason ?? reason;
  return reason;
}

function below(failure: Failure | undefined): Failure | undefined {
  return failure?.suppressed?.[0] ?? failure?.failed_shards?.[0]?.reason;
}
