// Dynamic templates that Sparrow matches in place of the cluster: what they are for, and what of them is refused.
import type { EngineError, EngineRequest, SearchEngine } from '@sparrow-search/engine';
import { describe, expect, it } from 'vitest';

import { applies, checkedTemplates, decidingTemplates, defined } from './dynamic-templates.js';
import type { Json } from './json.js';
import type { Product } from './product.js';
import type { KnownIndices } from './known-indices.js';
import { SemanticFields } from './semantic-fields.js';
import type { Transport } from './transport.js';
import type { Turns } from './turns.js';

const OPENSEARCH = { name: 'OpenSearch' } as Product;
const ELASTICSEARCH = { name: 'Elasticsearch' } as Product;
const SEMANTIC = { type: 'semantic_text', inference_id: 'e' };
const own = (rule: Json): Json => ({ own: { ...rule, mapping: SEMANTIC } });
const words = (rule: Json): Json => ({ words: { ...rule, mapping: { type: 'keyword' } } });
const REGEX = { match_pattern: 'regex', match: '(?i)x.*' };

function reasonOf(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (error) {
    return (error as EngineError).reason;
  }
}

describe('dynamic templates that are put', () => {
  it.each([
    ['in one that brings passages', [own({ match_pattern: 'regex', match: '(' })]],
    ['in front of one', [words(REGEX), own({ match: 'y*' })]],
    ['of an unknown kind', [own({ match_pattern: 'glob', match: 'x' })]],
  ])('have no regular expression %s', (_, list) => {
    expect(reasonOf(() => checkedTemplates(list, ELASTICSEARCH))).toMatch(
      /^\[match_pattern\] of the dynamic template \[(own|words)\],.* is not available over a cluster: use simple patterns/u,
    );
  });

  it('have one where the cluster alone matches it', () => {
    expect(checkedTemplates([own({ match: 'y*' }), words(REGEX)], ELASTICSEARCH)).toEqual([own({ match: 'y*' })]);
    expect(checkedTemplates([words(REGEX)], ELASTICSEARCH)).toEqual([]);
    const vectors = [{ v: { ...REGEX, mapping: { type: 'dense_vector', dims: 2 } } }];
    expect(checkedTemplates(vectors, ELASTICSEARCH)).toEqual([]);
    expect(reasonOf(() => checkedTemplates(vectors, OPENSEARCH))).toContain('[v]');
  });

  it('are no more than the native engine takes', () => {
    const many = Array.from({ length: 1_001 }, () => own({ match: 'y' }));
    expect(reasonOf(() => checkedTemplates(many, ELASTICSEARCH))).toContain('[1001] templates, at most [1000]');
    const long = own({ match: Array.from({ length: 5_001 }, () => 'y') });
    expect(reasonOf(() => checkedTemplates([long], ELASTICSEARCH))).toContain('[5001] patterns, at most [5000]');
  });

  it('are checked by the native engine, as the cluster does not hear of them', async () => {
    const asked: any[] = [];
    const native = {
      execute: (_: EngineRequest, body: Uint8Array) => {
        asked.push(JSON.parse(Buffer.from(body).toString()));
        return Promise.resolve({ status: 200, body: Buffer.from('{}') });
      },
    } as unknown as SearchEngine;
    const semantic = new SemanticFields(native, {} as Transport, {} as KnownIndices, OPENSEARCH, {} as Turns);
    const vectors = { v: { match: 'v', mapping: { type: 'dense_vector', dims: 2 } } };
    const given = { dynamic_templates: [own({ mach: 'y' }), words({ match: 'x' }), vectors] };
    expect(await semantic.checked(given)).toEqual(given);
    const update = { properties: {}, dynamic_templates: [own({ mach: 'y' }), { v: { match: 'v', mapping: {} } }] };
    expect(asked).toMatchObject([{ update }]);
    await expect(semantic.checked({ dynamic_templates: [own(REGEX)] })).rejects.toMatchObject({ status: 400 });
    expect(asked).toHaveLength(1);
  });
});

describe('a dynamic template', () => {
  const [first = ['', {}] as const] = decidingTemplates([own({ match: '*_y', path_unmatch: 'no.*' })], ELASTICSEARCH);

  it('is for the names and paths that its patterns match', () => {
    expect(applies(first, 'a_y', 'a_y', 'string')).toBe(true);
    expect(applies(first, 'a_z', 'a_z', 'string')).toBe(false);
    expect(applies(first, 'a_y', 'no.a_y', 'string')).toBe(false);
    expect(applies(['t', { mapping: SEMANTIC }], 'a', 'a', 'string')).toBe(false);
  });

  it('of a mapping that was put past Sparrow runs no regular expression, and says so', () => {
    const hostile = ['t', { match_pattern: 'regex', match: '(a+)+b', match_mapping_type: 'string' }] as const;
    expect(reasonOf(() => applies(hostile, 'a'.repeat(40), 'a', 'string'))).toContain('[t]');
    expect(applies(hostile, 'a', 'a', 'long')).toBe(false);
  });

  it('has the name of a field as it is', () => {
    const template = ['t', { mapping: { ...SEMANTIC, meta: { of: '{name}' } } }] as const;
    expect(defined(template, `"$&$'`, 'string')['meta']).toEqual({ of: `"$&$'` });
  });
});
