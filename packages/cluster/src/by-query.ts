import type { Cancel, EngineRequest } from '@sparrow-search/engine';

import { notOverCluster } from './errors.js';
import { isObject, parseAnswer } from './json.js';
import { encodeExpression } from './names.js';
import { type ReadingContext, readSearch } from './reading.js';
import type { Reindex } from './reindex.js';
import { passedOn } from './replies.js';
import type { Transport } from './transport.js';

/** The pipeline that the documents of all indices go through, or that of each index. */
export interface PipelinesOf {
  readonly all?: string;
  readonly each?: Readonly<Record<string, string>>;
}

/**
 * The pipelines that an `_update_by_query` goes through, by its indices: the one that is named, or the default one of each.
 */
export async function pipelinesOf(
  transport: Transport,
  { query }: EngineRequest,
  expression: string,
): Promise<PipelinesOf> {
  const { pipeline, dry_run: dry } = query;
  if (dry !== undefined) throw notOverCluster('[dry_run] of an _update_by_query');
  if (pipeline !== undefined) return pipeline === '_none' ? {} : { all: pipeline };
  const options = ['ignore_unavailable', 'allow_no_indices', 'expand_wildcards'];
  const answered = await transport.ask({
    method: 'GET',
    path: `/${encodeExpression(expression)}/_settings/index.default_pipeline,index.uuid`,
    query: {
      flat_settings: 'true',
      ...Object.fromEntries(Object.entries(query).filter(([name]) => options.includes(name))),
    },
    repeatable: true,
  });
  if (answered.status !== 200) throw passedOn(answered);
  const each = Object.entries(parseAnswer(answered.body) as object).flatMap(([index, it]: [string, unknown]) => {
    const settings = isObject(it) ? it['settings'] : undefined;
    const found = isObject(settings) ? settings['index.default_pipeline'] : undefined;
    return typeof found === 'string' && found !== '_none' ? [[index, found] as const] : [];
  });
  return each.length === 0 ? {} : { each: Object.fromEntries(each) };
}

/** The query of a copy in the cluster's form. */
export async function translatedQuery(
  context: ReadingContext,
  request: EngineRequest,
  source: string,
  { query }: Reindex,
  cancel?: Cancel,
): Promise<{ readonly text: string; readonly warnings: readonly string[] } | undefined> {
  if (query === undefined) return undefined;
  const read = await readSearch(context, request, source, `{"query":${query}}`, cancel);
  return { text: read.section('query') ?? query, warnings: read.warnings };
}
