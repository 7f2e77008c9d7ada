import { matchesGlob } from '@sparrow-search/engine';

import { illegal, notOverCluster } from './errors.js';
import { type Json, isObject, textOf } from './json.js';
import { ownTemplates } from './mappings.js';
import type { Product } from './product.js';

/** Most templates and patterns with which each new field of a document is compared; the native engine has the same. */
const MOST_TEMPLATES = 1_000;
const MOST_PATTERNS = 5_000;

const PATTERNS = ['match', 'unmatch', 'path_match', 'path_unmatch'] as const;

/** A dynamic template: its name, and its rule. */
export type Template = readonly [name: string, rule: Json];

/** The templates of a list that decide whether a field is Sparrow's to make: none behind the last one that makes such fields. */
export function decidingTemplates(list: unknown, product: Product): readonly Template[] {
  const all: readonly unknown[] = Array.isArray(list) ? list : [];
  const last = all.findLastIndex((one) => ownTemplates([one], product).length > 0);
  return all
    .slice(0, last + 1)
    .flatMap((one) => (isObject(one) ? Object.entries(one) : []))
    .flatMap(([name, rule]) => (isObject(rule) ? [[name, rule] as const] : []));
}

/**
 * Checks templates that are put, as far as Sparrow matches fields with them in place of the cluster.
 *
 * @returns those of which the cluster never hears: the native engine has to check them. Fields of vectors are not the same there, so that
 *   their definitions are left out
 * @throws {EngineError} 400 for too many of them, and for regular expressions
 */
export function checkedTemplates(list: unknown, product: Product): readonly Json[] {
  const deciding = decidingTemplates(list, product);
  if (deciding.length > MOST_TEMPLATES)
    throw illegal(
      `[dynamic_templates] has [${String(deciding.length)}] templates, at most [${String(MOST_TEMPLATES)}] are possible on this server`,
    );
  const patterns = deciding.flatMap(([, rule]) => PATTERNS.flatMap((key) => textsIn(rule, key))).length;
  if (patterns > MOST_PATTERNS)
    throw illegal(
      `[dynamic_templates] has [${String(patterns)}] patterns, at most [${String(MOST_PATTERNS)}] are possible on this server`,
    );
  for (const [name, rule] of deciding) if (isRegex(rule)) throw noRegex(name);
  return deciding.flatMap(([name, rule]) => {
    const [type] = ownTemplates([{ [name]: rule }], product);
    if (type === undefined) return [];
    return [{ [name]: type === 'semantic_text' ? rule : { ...rule, mapping: {} } }];
  });
}

/**
 * Whether a template is for a field.
 *
 * @param kind what a template calls the kind of its value
 * @throws {EngineError} 400 for regular expressions, which a mapping may have that was put past Sparrow, or from several templates
 */
export function applies([template, rule]: Template, name: string, path: string, kind: string): boolean {
  const kinds = textsIn(rule, 'match_mapping_type');
  const conditions = ['match', 'path_match', 'match_mapping_type', 'unmatch_mapping_type'];
  const matches = (key: (typeof PATTERNS)[number], text: string): boolean =>
    textsIn(rule, key).some((it) => matchesGlob(it, text));
  const isFor =
    // Without any condition it is for those who name it.
    conditions.some((key) => rule[key] !== undefined) &&
    (kinds.length === 0 || kinds.includes('*') || kinds.includes(kind)) &&
    !textsIn(rule, 'unmatch_mapping_type').includes(kind) &&
    (rule['path_match'] === undefined || matches('path_match', path)) &&
    !matches('path_unmatch', path);
  // A backtracking matcher would take as long as a writer of documents likes, and others wait for it.
  if (isFor && isRegex(rule)) throw noRegex(template);
  return isFor && (rule['match'] === undefined || matches('match', name)) && !matches('unmatch', name);
}

/** The field that a template makes. */
export function defined([, rule]: Template, name: string, kind: string): Json {
  const type = { string: 'text', double: 'float' }[kind] ?? kind;
  const filled = JSON.stringify(rule['mapping'] ?? {})
    // A function, as `$` in a name would stand for something.
    .replaceAll('{name}', () => JSON.stringify(name).slice(1, -1))
    .replaceAll('{dynamic_type}', type);
  const field = JSON.parse(filled) as Json;
  return { ...field, type: textOf(field['type']) ?? type };
}

function isRegex(rule: Json): boolean {
  return (textOf(rule['match_pattern']) ?? 'simple') !== 'simple';
}

function noRegex(name: string): Error {
  return notOverCluster(
    `[match_pattern] of the dynamic template [${name}], in front of or in one that brings vectors,`,
    'use simple patterns with [*], or put the template behind the others',
  );
}

function textsIn(rule: Json, key: string): readonly string[] {
  return [rule[key] ?? []].flat().map(String);
}
