// Documents: the indices, and of one of them its documents, its mapping and its size.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { filterProblem } from '../../../engine/src/diagnostics/named-fields';
import { call } from '../lib/api';
import { bytes, count, plural } from '../lib/format';
import { type Index, loadIndices } from '../lib/indices';
import { useLoad } from '../lib/load';
import { address, current, remember } from '../lib/route';
import { vectorFields } from '../search/fields';
import { shown } from '../../../cli/src/documents/shown-document';
import { FilterInput } from '../search/filter-input';
import type { Properties } from '../search/fields';
import { Json } from '../shell/json';
import { Head, Hidden, Note, Problem, Raw, Sure } from '../shell/parts';

type Tab = 'documents' | 'mapping' | 'settings';
const TABS: readonly (readonly [Tab, string])[] = [
  ['documents', 'Documents'],
  ['mapping', 'Mapping'],
  ['settings', 'Size'],
];

export function IndicesScreen(): JSX.Element {
  const { value: known, error, reload } = useLoad(loadIndices, [], 5000);
  const [name, setName] = useState(() => current().params.get('index') ?? '');
  const index = known?.indices.find((one) => one.name === name) ?? known?.indices[0];
  return (
    <>
      <Head title="Documents">
        <a class="button quiet" href={address('add')}>
          Add data
        </a>
      </Head>
      <Problem text={error} />
      {known?.indices.length === 0 && known.hidden.length > 0 && <Hidden names={known.hidden} />}
      {known?.indices.length === 0 && known.hidden.length === 0 && (
        <Note>
          There is no index yet. <a href={address('add')}>Add a file</a>, or{' '}
          <a href={address('search')}>try the example</a>.
        </Note>
      )}
      {index !== undefined && known !== undefined && (
        <div class="beside">
          <ul class="list" aria-label="Indices">
            {known.indices.map((one) => (
              <li key={one.name}>
                <button
                  type="button"
                  aria-current={one.name === index.name}
                  onClick={() => {
                    setName(one.name);
                    remember('indices', { index: one.name });
                  }}
                >
                  <b>{one.name}</b>
                  <span>
                    {one.documents === undefined ? '' : plural(one.documents, 'document')}
                    {one.bytes === undefined ? '' : `, ${bytes(one.bytes)}`}
                  </span>
                </button>
              </li>
            ))}
          </ul>
          <OneIndex
            key={index.name}
            index={index}
            onGone={() => {
              setName('');
              reload();
            }}
          />
        </div>
      )}
    </>
  );
}

function OneIndex({ index, onGone }: { readonly index: Index; readonly onGone: () => void }): JSX.Element {
  const [tab, setTab] = useState<Tab>('documents');
  const [error, setError] = useState('');
  const remove = (): void => {
    call('DELETE', `/${encodeURIComponent(index.name)}`).then(onGone, (failure: unknown) => {
      setError((failure as Error).message);
    });
  };
  return (
    <section class="one" aria-label={index.name}>
      <div class="one-head">
        <h2>{index.name}</h2>
        <a class="button quiet" href={address('search', { index: index.name })}>
          Search
        </a>
        <Sure label="Delete" question={`Delete ${index.name} with all its documents?`} onYes={remove} />
      </div>
      <Problem text={error} />
      <div class="tabs" role="tablist">
        {TABS.map(([id, label]) => (
          <button
            key={id}
            type="button"
            role="tab"
            aria-selected={tab === id}
            onClick={() => {
              setTab(id);
            }}
          >
            {label}
          </button>
        ))}
      </div>
      <div role="tabpanel" aria-label={TABS.find(([id]) => id === tab)?.[1]}>
        {tab === 'documents' && <Documents index={index} />}
        {tab === 'mapping' && <Mapping properties={index.properties} />}
        {tab === 'settings' && <Settings index={index} />}
      </div>
    </section>
  );
}

const PAGE = 20;

interface DocumentHit {
  readonly _id: string;
  readonly _source?: Readonly<Record<string, unknown>>;
}

function Documents({ index }: { readonly index: Index }): JSX.Element {
  const [filter, setFilter] = useState('');
  const [from, setFrom] = useState(0);
  const [open, setOpen] = useState('');
  const { value, error } = useLoad(
    () =>
      call<{ hits: { total: { value: number; relation: string }; hits: DocumentHit[] } }>(
        'POST',
        `/${encodeURIComponent(index.name)}/_search`,
        {
          query: filter.trim() === '' ? { match_all: {} } : { query_string: { query: filter } },
          from,
          size: PAGE,
          sort: ['_doc'],
          track_total_hits: true,
          _source: { excludes: vectorFields(index.fields) },
        },
      ),
    [index.name, filter, from],
  );
  const total = value?.hits.total.value ?? 0;
  return (
    <>
      <label class="field">
        <span>Only where</span>
        <FilterInput
          value={filter}
          data-search
          placeholder="title:sparrow AND year:[2000 TO *]"
          onFilter={(wanted) => {
            setFilter(wanted);
            setFrom(0);
          }}
        />
      </label>
      <Problem text={error === undefined ? undefined : filterProblem(error, filter)} />
      <ul class="documents">
        {value?.hits.hits.map((hit) => {
          const document = shown(hit._id, hit._source ?? {});
          return (
            <li key={hit._id}>
              <button
                type="button"
                aria-expanded={open === hit._id}
                onClick={() => {
                  setOpen(open === hit._id ? '' : hit._id);
                }}
              >
                <b>{document.title}</b>
                <span>{document.text.slice(0, 160)}</span>
                <code>{hit._id}</code>
              </button>
              {open === hit._id && (
                <pre tabIndex={0} aria-label={`document ${hit._id}`}>
                  <Json text={JSON.stringify(hit._source, null, 2)} />
                </pre>
              )}
            </li>
          );
        })}
      </ul>
      {value !== undefined && (
        <p class="pages">
          <button
            type="button"
            class="quiet"
            disabled={from === 0}
            onClick={() => {
              setFrom(Math.max(0, from - PAGE));
            }}
          >
            Previous
          </button>
          {total === 0
            ? 'no document'
            : `${count(from + 1)} to ${count(Math.min(total, from + PAGE))} of ${count(total)}`}
          <button
            type="button"
            class="quiet"
            disabled={from + PAGE >= Math.min(total, 10_000)}
            onClick={() => {
              setFrom(from + PAGE);
            }}
          >
            Next
          </button>
        </p>
      )}
    </>
  );
}

const MEANS: Readonly<Record<string, string>> = {
  text: 'searched by words',
  match_only_text: 'searched by words',
  semantic_text: 'split into passages and searched by meaning',
  sparse_vector: 'token weights',
  rank_features: 'token weights',
  dense_vector: 'vectors',
  keyword: 'exact values: filters, sorting, counting',
  date: 'filters, ranges, sorting',
};

function Mapping({ properties }: { readonly properties: Properties }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Fields">
      <table class="mapping">
        <thead>
          <tr>
            <th>Field</th>
            <th>Type</th>
            <th>What for</th>
          </tr>
        </thead>
        <tbody>
          <Rows properties={properties} depth={0} />
        </tbody>
      </table>
      <Raw title="As JSON" value={properties} />
    </div>
  );
}

function Rows({
  properties,
  depth,
  isSub = false,
}: {
  readonly properties: Properties;
  readonly depth: number;
  readonly isSub?: boolean;
}): JSX.Element {
  return (
    <>
      {Object.entries(properties).map(([name, property]) => (
        <>
          <tr key={name} class={isSub ? 'sub' : ''}>
            <td>
              <span style={{ paddingLeft: `${depth * 1.2}rem` }}>
                {isSub ? '.' : ''}
                {name}
              </span>
            </td>
            <td>
              <code>{property.type ?? 'object'}</code>
            </td>
            <td>
              {MEANS[property.type ?? ''] ?? ''}
              {property.inference_id === undefined ? '' : ` by ${property.inference_id}`}
              {property.copy_to === undefined ? '' : `, copied to ${[property.copy_to].flat().join(', ')}`}
            </td>
          </tr>
          {property.properties !== undefined && <Rows properties={property.properties} depth={depth + 1} />}
          {property.fields !== undefined && <Rows properties={property.fields} depth={depth + 1} isSub />}
        </>
      ))}
    </>
  );
}

function Settings({ index }: { readonly index: Index }): JSX.Element {
  const path = `/${encodeURIComponent(index.name)}`;
  const { value, error } = useLoad(
    async () => ({
      settings: await call<Record<string, { settings: unknown }>>('GET', `${path}/_settings`),
      stats: await call<{
        indices?: Record<string, { primaries: Readonly<Record<string, Readonly<Record<string, number>>>> }>;
      }>('GET', `${path}/_stats`),
    }),
    [index.name],
  );
  if (value === undefined) return <Problem text={error} />;
  const primaries = value.stats.indices?.[index.name]?.primaries ?? {};
  const figure = (group: string, name: string): number => primaries[group]?.[name] ?? 0;
  const rows: [string, string][] = [
    ['documents', count(figure('docs', 'count'))],
    ['deleted, until they are merged away', count(figure('docs', 'deleted'))],
    ['on disk', bytes(figure('store', 'size_in_bytes'))],
    ['segments', count(figure('segments', 'count'))],
    ['searches', count(figure('search', 'query_total'))],
    ['written', count(figure('indexing', 'index_total'))],
  ];
  return (
    <>
      <dl class="figures">
        {rows.map(([label, text]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <Raw title="Settings" value={value.settings[index.name]?.settings} open />
    </>
  );
}
