import { isObject, valueAt } from './json.js';
import { templateOf, thereIn, writeIndexOf } from './known-indices.js';
import { encodeExpression } from './names.js';
import { NONE, type Writing } from './writing.js';

/**
 * The pipeline that a document goes through: the one that the request names, else the one that its index names, else the one
 * that a template would give the index which the write makes.
 */
export async function pipelineOf(
  { transport }: Pick<Writing, 'transport'>,
  asked: string | undefined,
  index: string,
): Promise<string | undefined> {
  if (asked !== undefined) return asked === NONE || asked === '' ? undefined : asked;
  const answered = await transport.json({
    method: 'GET',
    // An index without any of the settings is left out of the answer.
    path: `/${encodeExpression(index)}/_settings/index.default_pipeline,index.uuid`,
    query: { flat_settings: 'true' },
  });
  const settings = thereIn(answered);
  if (settings === undefined) {
    const { template } = await templateOf(transport, index, answered.body);
    return given(valueAt(template, ['settings', 'index', 'default_pipeline']));
  }
  const found = Object.entries(isObject(settings) ? settings : {}).map(
    ([of, it]) => [of, valueAt(it, ['settings', 'index.default_pipeline'])] as const,
  );
  if (found.every(([, pipeline]) => pipeline === undefined)) return undefined;
  const [only, second] = found;
  if (second === undefined) return given(only?.[1]);
  const named = found.find(([of]) => of === index);
  if (named !== undefined) return given(named[1]);
  const all = found.map(([of]) => of);
  const written = await writeIndexOf(transport, index, all);
  return given(found.find(([of]) => of === written)?.[1]);
}

function given(pipeline: unknown): string | undefined {
  return typeof pipeline === 'string' && pipeline !== NONE && pipeline !== '' ? pipeline : undefined;
}
