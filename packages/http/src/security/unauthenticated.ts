import { HttpError } from '@sparrow-search/endpoints';

const CHALLENGES = ['Basic realm="security" charset="UTF-8"', 'Bearer realm="security"', 'ApiKey'];

/** Status 401, with the ways to authenticate that Elasticsearch names. */
export function unauthenticated(reason: string): HttpError {
  return new HttpError('unauthenticated', reason, {
    metadata: { header: { 'WWW-Authenticate': CHALLENGES } },
    headers: CHALLENGES.map((challenge) => ['WWW-Authenticate', challenge] as const),
  });
}
