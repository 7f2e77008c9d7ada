import { any, bool, int, list, map, object, open, ref, several, text } from './schema.js';

const changeable = {
  role_descriptors: map(ref('RoleDescriptor')),
  metadata: open(),
  expiration: text('such as `90d`; never, if nothing is said'),
};
const indices = list(ref('IndexPrivileges'));

/** What requests about API keys hold; the server takes the members that it knows from here. */
export const KEY_REQUESTS = {
  RoleDescriptor: object({
    ...{ cluster: several(text()), indices, index: indices, metadata: open(), description: text() },
    ...{ applications: list(any()), run_as: list(text()) },
  }),
  IndexPrivileges: object({ names: several(text()), privileges: several(text()), allow_restricted_indices: bool() }, [
    'names',
    'privileges',
  ]),
  ApiKeyRequest: object({ name: text(), ...changeable }, ['name']),
  UpdateApiKeyRequest: object(changeable),
  BulkUpdateApiKeysRequest: object({ ids: several(text()), ...changeable }, ['ids']),
  InvalidateApiKeysRequest: object({
    ...{ ids: list(text()), id: text(), name: text(), owner: bool(), username: text(), realm_name: text() },
  }),
  QueryApiKeysRequest: object({
    ...{ query: open(), from: int(), size: int(), sort: any(), search_after: list(any()) },
  }),
};
