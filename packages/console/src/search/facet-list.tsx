// The facets of a search: each value filters with one click, and no longer does with another.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';

import { count, plural } from '../lib/format';
import type { Index } from '../lib/indices';
import { useLoad } from '../lib/load';
import { countedFields, facetsOf, loadFacets, toggled } from './facets';
import type { Result } from './results';

interface Props {
  readonly index: Index;
  readonly results: readonly Result[];
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
}

export function FacetList({ index, results, filter, onFilter }: Props): JSX.Element | null {
  const fields = useMemo(() => countedFields(index.fields), [index]);
  const ids = useMemo(() => [...new Set(results.flatMap(({ hits }) => hits.map(({ id }) => id)))], [results]);
  const { value: counted = {} } = useLoad(() => loadFacets(index.name, fields, ids), [index.name, ids.join('\n')]);
  const facets = facetsOf(counted, filter);
  if (facets.length === 0) return null;
  return (
    <section class="facets" aria-label="Facets of the documents shown">
      <p class="small">In the {plural(ids.length, 'document')} shown:</p>
      {facets.map(({ field, values }) => (
        <fieldset key={field} class="facet">
          <legend>{field.replace(/\.keyword$/, '')}</legend>
          <div class="chips">
            {values.map(({ text, count: amount, isChosen }) => (
              <button
                key={text}
                type="button"
                class="chip"
                aria-pressed={isChosen}
                title={isChosen ? 'Remove this filter' : 'Search only documents with this value'}
                onClick={() => {
                  onFilter(toggled(filter, field, text, !isChosen));
                }}
              >
                {text} {isChosen ? '×' : <b>{count(amount ?? 0)}</b>}
              </button>
            ))}
          </div>
        </fieldset>
      ))}
    </section>
  );
}
