import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { afterAll, expect, it } from 'vitest';

import { modelDirectories } from './models.js';

const folder = mkdtempSync(join(tmpdir(), 'models-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

it('are the folders with the files of a model, also without weights that can be read', () => {
  const files = [
    'bert/model.safetensors',
    'graph/onnx/model.onnx',
    'old/pytorch_model.bin',
    'half/config.json',
    'half/1_Pooling/config.json',
    'notes/a.txt',
  ];
  for (const file of [...files, 'readme.md']) {
    const path = join(folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, '');
  }
  const found = (inside: string): readonly string[] =>
    modelDirectories(join(folder, inside)).map((path) => path.slice(folder.length + 1));
  expect(found('')).toEqual(['bert', 'graph', 'half', 'old']);
  expect(found('bert')).toEqual(['bert']);
  expect(found('half')).toEqual(['half']);
  expect(found('notes')).toEqual([]);
  expect(() => modelDirectories(join(folder, 'none'))).toThrow(/^cannot read the folder /u);
});
