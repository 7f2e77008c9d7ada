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

/** Files of a model whose weights are missing, or are not read: the engine says so of it, where its folder would be passed over in silence. */
const WITHOUT_WEIGHTS = ['config.json', 'pytorch_model.bin'];

const holds = (folder: string, files: readonly string[]): boolean =>
  files.some((file) => existsSync(join(folder, file)));

/**
 * The model directories inside `folder`: every child with the files of a model, or the folder itself if it has weights as safetensors or
 * ONNX.
 *
 * @throws if there is no such folder
 */
export function modelDirectories(folder: string): readonly string[] {
  if (holds(folder, WEIGHTS)) return [folder];
  const folders = children(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isDirectory())
    .sort();
  const isLone = holds(folder, WITHOUT_WEIGHTS) && !folders.some((path) => holds(path, WEIGHTS));
  return isLone ? [folder] : folders.filter((path) => holds(path, [...WEIGHTS, ...WITHOUT_WEIGHTS]));
}

function children(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw new Error(`cannot read the folder ${folder}: ${fileProblem(cause)}`, { cause });
  }
}
