import { type Action, ACTIONS } from '@sparrow-search/engine';
import { expect, it } from 'vitest';

import { CLUSTER_PRIVILEGES, INDEX_PRIVILEGES, grants } from './actions.js';

it.each(Object.keys(ACTIONS) as Action[])(
  '%s names every privilege that grants it, as a refusal lists them',
  (action) => {
    const { scope, privileges } = ACTIONS[action];
    const all = [...(scope === 'index' ? INDEX_PRIVILEGES : CLUSTER_PRIVILEGES)];
    expect(privileges.toSorted()).toEqual(all.filter((privilege) => grants([privilege], action)).toSorted());
  },
);
