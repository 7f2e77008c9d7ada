import { ACTIONS } from '@sparrow-search/engine';
import { expect, it } from 'vitest';

import { FOR_ALL, FOR_OWN, type Key, mayCreate, mayRevoke } from './rights';

const key = (id: string, cluster?: string[], limits?: string[]): Key => ({
  ...{ id, name: id, creation: 0, invalidated: false },
  role_descriptors: cluster === undefined ? {} : { r: { cluster } },
  ...(limits === undefined ? {} : { limited_by: [{ r: { cluster: limits } }] }),
});

it.each(['create', 'invalidate'] as const)('the privileges are those that let a key %s keys', (what) => {
  const { privileges } = ACTIONS[`cluster:admin/xpack/security/api_key/${what}`];
  expect(privileges.toSorted()).toEqual([FOR_OWN, ...FOR_ALL].toSorted());
});

it('a key is offered for revocation only to those that may revoke it', () => {
  const [owner, shop] = [key('owner'), key('shop', ['monitor'])];
  // The name alone makes no owner key.
  const named = { ...shop, name: 'owner' };
  const may = (own: Key | undefined): boolean[] => [owner, shop, named].map((one) => mayRevoke(own, one));
  expect(may(owner)).toEqual([true, true, true]);
  expect(may(key('admin', ['manage_api_key']))).toEqual([false, true, true]);
  expect(may(key('admin', ['manage_security']))).toEqual([false, true, true]);
  expect(may(key('auditor', ['read_security']))).toEqual([false, false, false]);
  expect(may(undefined)).toEqual([false, false, false]);
  // What made a key bounds it, whether it has roles of its own or not.
  expect(may(key('made', ['all'], ['read_security']))).toEqual([false, false, false]);
  expect(may(key('made', undefined, ['all']))).toEqual([false, true, true]);
  expect(may(key('made', undefined, ['monitor']))).toEqual([false, false, false]);
  const self = key('self', ['manage_own_api_key']);
  expect([...may(self), mayRevoke(self, self)]).toEqual([false, false, false, true]);
});

it('the form for a new key is there for those that may create one', () => {
  expect([key('owner'), key('self', ['manage_own_api_key']), key('admin', ['all'])].map(mayCreate)).toEqual([
    ...[true, true, true],
  ]);
  expect([undefined, key('auditor', ['read_security'])].map(mayCreate)).toEqual([false, false]);
});
