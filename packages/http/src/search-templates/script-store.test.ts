import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { beforeEach, describe, expect, it } from 'vitest';

import { inCommon } from '../../../../test/support/text-in-common.js';
import { ScriptStore } from './script-store.js';

let data: string;
beforeEach(async () => {
  data = await mkdtemp(join(tmpdir(), 'sparrow-scripts-'));
});

const script = (id: string, source = '{}') => ({ id, source, isObject: false });
const ids = async (store: ScriptStore): Promise<string[]> => [...(await store.current()).keys()].sort();

describe('scripts that several servers have in common', () => {
  it('are seen by each at once, and none is lost when two change them at the same time', async () => {
    const common = inCommon();
    const servers = [await ScriptStore.open(data, common.server()), await ScriptStore.open(data, common.server())];
    const [one, two] = servers as [ScriptStore, ScriptStore];
    await one.put(script('a'));
    expect(await ids(two)).toEqual(['a']);
    const names = Array.from({ length: 20 }, (_, at) => `b${String(at + 10)}`);
    await Promise.all(names.map((name, at) => servers[at % 2]?.put(script(name))));
    expect([await ids(one), await ids(two)]).toEqual([
      ['a', ...names],
      ['a', ...names],
    ]);
    await two.delete('a');
    // The second server read the scripts last when [a] was still among them.
    await two.put(script('c'));
    await one.delete('c');
    await expect(one.delete('a')).rejects.toThrow('stored script [a] does not exist');
    expect(await ids(await ScriptStore.open(data, common.server()))).toEqual(names);
  });

  it('are refused when others write all the time, and stay as the others wrote them', async () => {
    const common = inCommon();
    const other = await ScriptStore.open(data, common.server());
    const text = common.server();
    let written = 0;
    const raced = await ScriptStore.open(data, {
      ...text,
      replace: async (pieces) => {
        await other.put(script('theirs', `{"size":${String((written += 1))}}`));
        return text.replace(pieces);
      },
    });
    await expect(raced.put(script('mine'))).rejects.toThrow('try again later');
    expect([...(await raced.current()).values()]).toEqual([script('theirs', `{"size":${String(written)}}`)]);
  });
});
