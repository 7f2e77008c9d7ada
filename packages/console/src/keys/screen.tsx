// Keys: who may do what, and a new key in a few clicks.
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { call, optional } from '../lib/api';
import { when } from '../lib/format';
import { useLoad } from '../lib/load';
import { Copy, Head, Note, Problem, Raw, Sure } from '../shell/parts';
import { type Key, type Role, mayCreate, mayRevoke, rightsOf } from './rights';

/** What a key is usually for; the rest is for the request editor. */
const PURPOSES = {
  search: {
    label: 'search',
    role: (names: string[]): Role => ({ indices: [{ names, privileges: ['read', 'view_index_metadata'] }] }),
  },
  feed: {
    label: 'add documents, nothing else',
    role: (names: string[]): Role => ({ indices: [{ names, privileges: ['create_doc'] }] }),
  },
  write: {
    label: 'search and change documents',
    role: (names: string[]): Role => ({
      indices: [{ names, privileges: ['read', 'write', 'view_index_metadata', 'maintenance'] }],
    }),
  },
  manage: {
    label: 'everything with these indices',
    role: (names: string[]): Role => ({ indices: [{ names, privileges: ['all'] }] }),
  },
  watch: { label: 'watch the server, nothing else', role: (): Role => ({ cluster: ['monitor'] }) },
} as const;
type Purpose = keyof typeof PURPOSES;

/** All keys, or the key of this tab where it may see no other. */
async function listKeys(): Promise<readonly Key[]> {
  const path = '/_security/api_key?with_limited_by=true';
  const all = await optional<{ api_keys: Key[] } | undefined>(undefined, 'GET', path);
  return (all ?? (await call<{ api_keys: Key[] }>('GET', `${path}&owner=true`))).api_keys;
}

export function KeysScreen(): JSX.Element {
  const [all, setAll] = useState(false);
  const [failure, setFailure] = useState('');
  const { value: keys, error, reload } = useLoad(listKeys, []);
  const { value: me } = useLoad(
    () => call<{ api_key?: { id: string; name: string } }>('GET', '/_security/_authenticate'),
    [],
  );
  const end = (id: string): void => {
    call('DELETE', '/_security/api_key', { ids: [id] }).then(reload, (reason: unknown) => {
      setFailure((reason as Error).message);
    });
  };
  const own = keys?.find(({ id }) => id === me?.api_key?.id);
  const shown = keys?.filter(
    ({ invalidated, expiration }) => all || (!invalidated && (expiration === undefined || expiration > Date.now())),
  );
  return (
    <>
      <Head title="Keys">
        <label class="check">
          <input
            type="checkbox"
            checked={all}
            onChange={(event) => {
              setAll(event.currentTarget.checked);
            }}
          />{' '}
          Show expired and revoked keys
        </label>
      </Head>
      <Problem text={error ?? failure} />
      {mayCreate(own) && <NewKey onMade={reload} />}
      <ul class="keys">
        {shown?.map((key) => (
          <li key={key.id} class={key.invalidated ? 'key-card ended' : 'key-card'}>
            <div class="one-head">
              <h2>{key.name}</h2>
              {me?.api_key?.id === key.id && <span class="state started">used in this tab</span>}
              {key.invalidated && <span class="small">revoked</span>}
              {!key.invalidated && mayRevoke(own, key) && (
                <Sure
                  label="Revoke"
                  question={
                    me?.api_key?.id === key.id
                      ? 'You are signed in with this key. Once it is revoked, nothing works with it, here either. Revoke it?'
                      : 'Requests with it will be refused from now on. Revoke it?'
                  }
                  onYes={() => {
                    end(key.id);
                  }}
                />
              )}
            </div>
            <p class="small">
              <code>{key.id}</code> · created {when(key.creation)} ·{' '}
              {key.expiration === undefined
                ? 'never expires'
                : `${key.expiration > Date.now() ? 'expires' : 'expired'} ${when(key.expiration)}`}
            </p>
            <p>{rightsOf(key)}</p>
            {Object.keys(key.role_descriptors ?? {}).length > 0 && <Raw title="Roles" value={key.role_descriptors} />}
          </li>
        ))}
      </ul>
    </>
  );
}

function NewKey({ onMade }: { readonly onMade: () => void }): JSX.Element {
  const [name, setName] = useState('');
  const [purpose, setPurpose] = useState<Purpose>('search');
  const [indices, setIndices] = useState('*');
  const [life, setLife] = useState('90d');
  const [made, setMade] = useState<{ name: string; encoded: string }>();
  const [error, setError] = useState('');
  const make = (): void => {
    const names = indices.split(/[\s,]+/).filter((one) => one !== '');
    const body = {
      name,
      ...(life === '' ? {} : { expiration: life }),
      role_descriptors: { [purpose]: PURPOSES[purpose].role(names) },
    };
    call<{ name: string; encoded: string }>('POST', '/_security/api_key', body).then(
      (answer) => {
        setMade(answer);
        setError('');
        setName('');
        onMade();
      },
      (failure: unknown) => {
        setError((failure as Error).message);
      },
    );
  };
  return (
    <form
      class="new-key"
      onSubmit={(event) => {
        event.preventDefault();
        make();
      }}
    >
      <h2>A new key</h2>
      <label class="field">
        <span>Name</span>
        <input
          value={name}
          required
          placeholder="shop"
          onInput={(event) => {
            setName(event.currentTarget.value);
          }}
        />
      </label>
      <label class="field">
        <span>Allowed to</span>
        <select
          value={purpose}
          onChange={(event) => {
            setPurpose(event.currentTarget.value as Purpose);
          }}
        >
          {Object.entries(PURPOSES).map(([id, { label }]) => (
            <option key={id} value={id}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {purpose !== 'watch' && (
        <label class="field">
          <span>Indices</span>
          <input
            value={indices}
            required
            spellcheck={false}
            onInput={(event) => {
              setIndices(event.currentTarget.value);
            }}
          />
        </label>
      )}
      <label class="field">
        <span>Expires</span>
        <select
          value={life}
          onChange={(event) => {
            setLife(event.currentTarget.value);
          }}
        >
          <option value="1d">in a day</option>
          <option value="30d">in 30 days</option>
          <option value="90d">in 90 days</option>
          <option value="365d">in a year</option>
          <option value="">never</option>
        </select>
      </label>
      <button>Create</button>
      <Problem text={error} />
      {made !== undefined && (
        <Note kind="good">
          <p>
            The key <b>{made.name}</b>. It is shown this once:
          </p>
          <p class="secret">
            <code>{made.encoded}</code> <Copy text={() => made.encoded} />
          </p>
        </Note>
      )}
    </form>
  );
}
