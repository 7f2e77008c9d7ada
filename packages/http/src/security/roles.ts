import { HttpError, KEY_REQUESTS } from '@sparrow-search/endpoints';

import { CLUSTER_PRIVILEGES, INDEX_PRIVILEGES } from './actions.js';
import { isObject, meantBy } from './request-body.js';

const MEMBERS = Object.keys(KEY_REQUESTS.RoleDescriptor.properties);
const OF_INDICES = Object.keys(KEY_REQUESTS.IndexPrivileges.properties);

/** Privileges on the indices that any of `names` matches; `*` and `?` are wildcards. */
export interface IndexPrivileges {
  readonly names: readonly string[];
  readonly privileges: readonly string[];
}

/** One role of a key. A key may do what any of its roles allows. */
export interface Role {
  readonly cluster: readonly string[];
  readonly indices: readonly IndexPrivileges[];
}

export type Roles = Readonly<Record<string, Role>>;

/** The owner key's role. */
export const OWNER_ROLES: Roles = { owner: { cluster: ['all'], indices: [{ names: ['*'], privileges: ['all'] }] } };

/**
 * Reads `role_descriptors` of a request.
 *
 * @throws {HttpError} 400 naming the field or the privilege that is not known. Restrictions that Sparrow does not enforce
 *   (`query`, `field_security`) are refused too: accepting them would grant more than was asked for.
 */
export function parseRoles(value: unknown): Roles {
  // Without a prototype: a role may have any name, `__proto__` too.
  const roles = Object.create(null) as Record<string, Role>;
  if (value === undefined || value === null) return roles;
  for (const [name, descriptor] of Object.entries(object(value, 'role_descriptors'))) {
    roles[name] = parseRole(name, object(descriptor, name));
  }
  return roles;
}

/**
 * Whether something has the form of roles that a request was read into. Privileges need not be known: a later version may have
 * others, and one that nobody knows allows nothing.
 */
export function isRoles(roles: unknown): roles is Roles {
  return isObject(roles) && Object.values(roles).every(isRole);
}

function isRole(role: unknown): role is Role {
  if (!isObject(role)) return false;
  const { cluster, indices } = role as Partial<Record<keyof Role, unknown>>;
  return areStrings(cluster) && Array.isArray(indices) && indices.every(isIndexPrivileges);
}

function isIndexPrivileges(item: unknown): item is IndexPrivileges {
  return isObject(item) && areStrings(item['names']) && areStrings(item['privileges']);
}

function areStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

function parseRole(name: string, descriptor: Record<string, unknown>): Role {
  let cluster: readonly string[] = [];
  let indices: readonly IndexPrivileges[] = [];
  for (const [key, value] of Object.entries(descriptor)) {
    switch (key) {
      case 'cluster':
        cluster = strings(value, name, key);
        break;
      case 'index':
      case 'indices':
        if (!Array.isArray(value)) {
          throw parseError(
            `failed to parse indices privileges for role [${name}]. expected field [${key}] value to be an array`,
          );
        }
        indices = value.map((item) => parseIndexPrivileges(name, object(item, key)));
        break;
      case 'metadata':
      case 'description':
        break;
      case 'applications':
      case 'run_as':
        if (Array.isArray(value) && value.length === 0) break;
        throw unsupported(name, key);
      default:
        throw parseError(`failed to parse role [${name}]. unexpected field [${key}]${meantBy(key, MEMBERS)}`);
    }
  }
  check(cluster, CLUSTER_PRIVILEGES, 'cluster');
  return { cluster, indices };
}

function parseIndexPrivileges(role: string, item: Record<string, unknown>): IndexPrivileges {
  for (const key of Object.keys(item)) {
    if (Object.hasOwn(INSTEAD, key)) throw unsupported(role, key, INSTEAD[key]);
    if (!OF_INDICES.includes(key)) {
      const problem = `unexpected field [${key}]${meantBy(key, OF_INDICES)}`;
      throw parseError(`failed to parse indices privileges for role [${role}]. ${problem}`);
    }
  }
  for (const key of ['names', 'privileges']) {
    if (item[key] === undefined) {
      throw parseError(`failed to parse indices privileges for role [${role}]. missing required [${key}] field`);
    }
  }
  const privileges = strings(item['privileges'], role, 'privileges');
  check(privileges, INDEX_PRIVILEGES, 'index');
  return { names: strings(item['names'], role, 'names'), privileges };
}

function check(privileges: readonly string[], known: ReadonlySet<string>, scope: 'cluster' | 'index'): void {
  const unknown = privileges.find((privilege) => !known.has(privilege));
  if (unknown !== undefined) {
    throw new HttpError(
      'validation',
      `Validation Failed: 1: unknown ${scope} privilege [${unknown}]. a privilege must be one of the predefined ` +
        `${scope} privilege names [${[...known].sort().join(',')}];`,
    );
  }
}

function strings(value: unknown, role: string, key: string): readonly string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (!list.every((item) => typeof item === 'string')) {
    throw parseError(`failed to parse role [${role}]. field [${key}] must be a string or an array of strings`);
  }
  return list;
}

function object(value: unknown, name: string): Record<string, unknown> {
  if (!isObject(value)) throw parseError(`expected [${name}] to be an object`);
  return value;
}

function parseError(reason: string): HttpError {
  return new HttpError('parse', reason);
}

/** What to do in place of what a role cannot have: docs/guides/from-elasticsearch.md shows it. */
const INSTEAD: Readonly<Record<string, string>> = {
  query: ': give each group of readers an index of its own, or an alias with a filter',
  field_security: ': put the fields that not everybody may see into an index of their own',
};

function unsupported(role: string, key: string, instead = ''): HttpError {
  return parseError(`failed to parse role [${role}]. field [${key}] is not supported${instead}`);
}
