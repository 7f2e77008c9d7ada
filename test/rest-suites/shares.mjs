// What share of a suite passes: of its core, and of all of it. Tests of an interface that version 8 does not have, and those that
// skip themselves, count for nothing.

/** Core is what a search application sends: folders of a suite. `wide` is all of them. */
const CORE = [
  ...['bulk', 'create', 'delete', 'exists', 'get', 'get_source', 'index', 'mget', 'update'],
  ...['count', 'explain', 'field_caps', 'mlt', 'msearch', 'mtermvectors', 'scroll', 'termvectors', 'suggest'],
  ...['search', 'search.highlight', 'search.inner_hits'],
  ...['indices.analyze', 'indices.create', 'indices.delete', 'indices.exists', 'indices.get', 'indices.validate_query'],
  ...['indices.get_field_mapping', 'indices.get_mapping', 'indices.put_mapping'],
  ...['indices.get_settings', 'indices.put_settings'],
  ...[
    'indices.delete_alias',
    'indices.exists_alias',
    'indices.get_alias',
    'indices.put_alias',
    'indices.update_aliases',
  ],
  ...['indices.exists_template', 'indices.get_template', 'indices.put_template'],
  ...['indices.get_index_template', 'indices.put_index_template', 'indices.simulate_index_template'],
  ...['indices.simulate_template', 'cluster.component_template'],
  ...['info', 'ingest', 'ping'],
];

/**
 * @param {{ file: string, state: string }[]} results
 * @returns {{ name: 'core' | 'wide', passed: number, of: number, percent: string }[]}
 */
export function shares(results) {
  const of = (name, folders) => {
    const counted = results.filter(({ file, state }) => state !== 'skipped' && folders(file.split('/')[0]));
    const passed = counted.filter(({ state }) => state === 'passed' || state === 'UNEXPECTED').length;
    const percent = counted.length === 0 ? '–' : ((100 * passed) / counted.length).toFixed(1);
    return { name, passed, of: counted.length, percent };
  };
  return [of('core', (folder) => CORE.includes(folder)), of('wide', () => true)];
}
