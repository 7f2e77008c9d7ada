import { existsSync, readdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

import { fileProblem } from './file-problem.js';

const require = createRequire(import.meta.url);

/**
 * npm packages whose contents are a model directory. This package depends on the first three, so that they are there wherever it is. The
 * third is a sparse head on the second. The others are there if somebody has installed them.
 */
const EMBEDDED = [
  '@sparrow-search/model-splade-tiny',
  '@sparrow-search/model-minilm-l6',
  '@sparrow-search/model-splade-minilm-l6',
  '@sparrow-search/model-bge-small-en',
  '@sparrow-search/model-multilingual-e5-small',
];

/** Directories of the models that are installed with the engine. */
export function embeddedModels(): readonly string[] {
  return EMBEDDED.flatMap((name) => {
    try {
      return [dirname(require.resolve(`${name}/package.json`))];
    } catch {
      return [];
    }
  });
}

/** Files of which one makes a folder a model. */
const WEIGHTS = ['model.onnx', 'onnx/model.onnx', 'model.safetensors', 'model.safetensors.index.json'];

const isModel = (folder: string): boolean => WEIGHTS.some((file) => existsSync(join(folder, file)));

/**
 * The model directories inside `folder`: every child with weights as safetensors or ONNX, or the folder itself.
 *
 * @throws if there is no such folder
 */
export function modelDirectories(folder: string): readonly string[] {
  if (isModel(folder)) return [folder];
  return children(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isDirectory() && isModel(path))
    .sort();
}

function children(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw new Error(`cannot read the folder ${folder}: ${fileProblem(cause)}`, { cause });
  }
}
