// Writes packages/engine/src/operations.generated.ts from what the addon declares: the engine's operations, and the actions that
// privileges are granted for.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

import { ADDON, at } from './paths.mjs';
import { StepFailed, output } from './process.mjs';

const FILE = at('packages', 'engine', 'src', 'operations.generated.ts');

const HEADER = `// Generated from the declarations in crates by scripts/lib/operations.mjs: do not edit.
`;

/** The text of the generated file for what an addon declares, as JSON. */
export function operationsFile(declared) {
  const { operations, actions } = JSON.parse(declared);
  const rows = (named) =>
    Object.entries(named)
      .map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`)
      .join('');
  const names = (named) =>
    Object.keys(named)
      .map((name) => `\n  | ${JSON.stringify(name)}`)
      .join('');
  return `${HEADER}import type { DeclaredAction, DeclaredOperation } from './operations.js';

/** The name of an operation. */
export type Operation =${names(operations)};

/** The name of an action that privileges are granted for, as the sentence of a refusal gives it. */
export type Action =${names(actions)};

/**
 * Every operation an engine answers, as Rust declares it next to the function that carries it out. The HTTP layer's route table maps
 * methods and paths to these names.
 */
export const OPERATIONS: Readonly<Record<Operation, DeclaredOperation>> = {
${rows(operations)}};

/** Every action that privileges are granted for. */
export const ACTIONS: Readonly<Record<Action, DeclaredAction>> = {
${rows(actions)}};
`;
}

/** Rewrites the generated file if what the built addon declares has changed. */
export function writeOperations() {
  // In a process of its own: the addon stays loaded in the one that loads it, and could not be replaced everywhere.
  const script = 'process.stdout.write(require(process.argv[1]).declared())';
  const declared = output(process.execPath, ['-e', script, ADDON]);
  if (declared === undefined) throw new StepFailed(`the addon ${ADDON} cannot be loaded`);
  const text = operationsFile(declared);
  if (existsSync(FILE) && readFileSync(FILE, 'utf8') === text) return;
  writeFileSync(FILE, text);
}
