// What a key may do, in words, and what the key of this tab may do with keys.

export interface Key {
  readonly id: string;
  readonly name: string;
  readonly creation: number;
  readonly expiration?: number;
  readonly invalidated: boolean;
  readonly role_descriptors?: Roles;
  /** The rights of the keys that made it, beyond which it has none; absent where that was the owner key, or it is the owner key. */
  readonly limited_by?: readonly Roles[];
}

export interface Role {
  readonly cluster?: readonly string[];
  readonly indices?: readonly { readonly names: readonly string[] | string; readonly privileges: readonly string[] }[];
}

type Roles = Readonly<Record<string, Role>>;

/** Cluster privileges of which each lets a key create keys and revoke any of them. */
export const FOR_ALL = ['manage_api_key', 'manage_security', 'all'];
/** The one that lets a key create keys and revoke itself. */
export const FOR_OWN = 'manage_own_api_key';

/** Whether a key may create keys. */
export function mayCreate(key: Key | undefined): boolean {
  return key !== undefined && holds(key, [FOR_OWN, ...FOR_ALL]);
}

/** Whether the key `own` may revoke another one, or itself. */
export function mayRevoke(own: Key | undefined, key: Key): boolean {
  if (own === undefined) return false;
  if (own.id === key.id) return holds(own, [FOR_OWN, ...FOR_ALL]);
  // The owner key can be revoked by itself only.
  return holds(own, FOR_ALL) && !(key.name === 'owner' && isUnlimited(key));
}

export function rightsOf({ role_descriptors: roles = {}, limited_by: limits }: Key): string {
  const parts = Object.values(roles).flatMap(({ cluster = [], indices = [] }) => [
    ...indices.map(({ names, privileges }) => `${privileges.join(', ')} on ${[names].flat().join(', ')}`),
    ...(cluster.length === 0 ? [] : [`${cluster.join(', ')} on the server`]),
  ]);
  if (Object.keys(roles).length === 0) {
    return limits === undefined ? 'May do everything.' : 'May do what the key that created it may do.';
  }
  const within = limits === undefined ? '' : ', within the rights of the key that created it';
  return parts.length === 0 ? 'May do nothing.' : `May: ${parts.join('; ')}${within}.`;
}

/** Whether the roles of a key, and those of all keys that made it, have one of these cluster privileges. */
function holds(key: Key, enough: readonly string[]): boolean {
  const { role_descriptors: roles = {}, limited_by: limits = [] } = key;
  const sets = Object.keys(roles).length === 0 ? limits : [roles, ...limits];
  return sets.every((set) =>
    Object.values(set).some(({ cluster = [] }) => cluster.some((one) => enough.includes(one))),
  );
}

function isUnlimited({ role_descriptors: roles = {}, limited_by: limits }: Key): boolean {
  return Object.keys(roles).length === 0 && limits === undefined;
}
