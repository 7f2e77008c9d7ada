import { type Endpoint, INTERFACE_VERSION } from '@sparrow-search/endpoints';

/** The agent and its build, as clients look for them. The build has no name that Elasticsearch would know. */
const AGENT = `299 Elasticsearch-${INTERFACE_VERSION}-unknown`;

const IGNORE_THROTTLED =
  '[ignore_throttled] parameter is deprecated because frozen indices have been deprecated. Consider cold or frozen tiers ' +
  'in place of frozen indices.';
const LEGACY_TEMPLATE = 'Legacy index templates are deprecated in favor of composable templates.';

const DEPLOYMENT_INFER = '/_ml/trained_models/{model}/deployment/_infer';
const DEPLOYMENT_INFER_SENTENCE =
  '[POST /_ml/trained_models/{model_id}/deployment/_infer] is deprecated! Use [POST /_ml/trained_models/{model_id}/_infer] ' +
  'instead.';

/** Deprecated forms that show in the route and its parameters. What is deprecated inside a body, the engine says. */
export function deprecations({ handler, path }: Endpoint, query: Readonly<Record<string, string>>): readonly string[] {
  if (path === DEPLOYMENT_INFER) return [DEPLOYMENT_INFER_SENTENCE];
  const legacy = 'engine' in handler && handler.engine === 'put_template';
  if (!legacy && query['ignore_throttled'] === undefined) return NONE;
  return [...(legacy ? [LEGACY_TEMPLATE] : []), ...(query['ignore_throttled'] === undefined ? [] : [IGNORE_THROTTLED])];
}

const NONE: readonly string[] = [];

/** A sentence as the value of a `Warning` header: quoted, with everything escaped that a header cannot hold. */
export function warning(sentence: string): string {
  const escaped = sentence
    .replaceAll(/["\\]/g, '\\$&')
    .replaceAll(/[^\t\x20-\x7e]/gu, (letter) => encodeURIComponent(letter));
  return `${AGENT} "${escaped}"`;
}
