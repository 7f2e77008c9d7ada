import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import {
  type Problem,
  type Repair,
  type Report,
  type RepositoryReport,
  checkData,
  checkRepository,
  repairData,
} from '@sparrow-search/engine';
import { checkIdentity } from '@sparrow-search/http/identity';
import { KeyStore } from '@sparrow-search/http/keys';

import { CommandError } from './errors.js';
import { counted, inLine } from './terminal.js';

/** Repositories that are named to who named the folder above them. */
const MOST_NAMED = 10;

/** What a command has to say, and how the process ends: 0 when everything is whole, 1 when something is damaged or lost. */
export interface Said {
  readonly text: string;
  readonly exitCode: 0 | 1;
}

/**
 * `sparrow check DATA`. No server may have the directory open.
 *
 * @throws {CommandError} when it is no data directory; what the engine throws when it is in use
 */
export async function checkDirectory(data: string, json: boolean): Promise<Said> {
  mustBeData(data);
  const report = checkData(data);
  const problems = [...(await ownProblems(data)), ...report.problems];
  const whole: Report = { ...report, problems };
  return { text: json ? line(whole) : describeReport(whole), exitCode: problems.length === 0 ? 0 : 1 };
}

/**
 * `sparrow check --repository DIR`: a snapshot repository, which a server may have in use.
 *
 * @throws {CommandError} when there is no such folder; what the engine throws when it is no repository
 */
export function checkSnapshots(repository: string, json: boolean): Said {
  mustBeThere(repository);
  mustBeNoParent(repository);
  const report = checkRepository(repository);
  return { text: json ? line(report) : describeRepository(report), exitCode: report.problems.length === 0 ? 0 : 1 };
}

/**
 * `sparrow repair DATA --into DIR`. No server may have the directory open.
 *
 * @throws {CommandError} when it is no data directory; what the engine throws when it is in use, or `into` is not empty
 */
export async function repairDirectory(data: string, into: string, json: boolean): Promise<Said> {
  mustBeData(data);
  const own = await ownProblems(data);
  const unusable = own.map(({ file }) => file);
  const repaired = repairData(data, into, unusable);
  const found: Report = { ...repaired.found, problems: [...own, ...repaired.found.problems] };
  const repair: Repair = { ...repaired, found };
  const lost = repair.indices.some((index) => index.lost !== 0) || repair.left_out.length > 0;
  return { text: json ? line(repair) : describeRepair(repair), exitCode: lost ? 1 : 0 };
}

/** The engine would name a file inside that is missing. */
function mustBeThere(folder: string): void {
  if (!existsSync(folder)) throw new CommandError(`there is no folder ${folder}`);
}

/**
 * The folder of `--repo-path` holds repositories, and is easily taken for one.
 *
 * @throws {CommandError} that names the repositories in it
 */
function mustBeNoParent(folder: string): void {
  if (isRepository(folder)) return;
  const inside = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isRepository(join(folder, entry.name)))
    .map(({ name }) => inLine(join(folder, name)))
    .sort();
  if (inside.length === 0) return;
  const which = inside.length === 1 ? 'did you mean' : 'choose one of its repositories:';
  const named = `${inside.slice(0, MOST_NAMED).join(', ')}${inside.length > MOST_NAMED ? ' …' : ''}`;
  throw new CommandError(`${folder} is not a snapshot repository; ${which} ${named}${inside.length === 1 ? '?' : ''}`);
}

/** Whether a folder has what only a repository has. */
function isRepository(folder: string): boolean {
  return existsSync(join(folder, 'repository.json'));
}

/** The engine would only say which of its files is missing. */
function mustBeData(folder: string): void {
  mustBeThere(folder);
  if (!existsSync(join(folder, 'store'))) throw new CommandError(`${folder} is not the data directory of a server`);
}

/** What is wrong with the files that the server itself keeps. */
async function ownProblems(data: string): Promise<Problem[]> {
  const problems: Problem[] = [];
  try {
    await KeyStore.open(data);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    problems.push({ file: 'security/api_keys.json', reason, affected: 'the API keys' });
  }
  try {
    await checkIdentity(data);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    problems.push({ file: 'identity.json', reason, affected: 'the identity of the cluster' });
  }
  return problems;
}

function describeReport({ data, indices, problems }: Report): string {
  const damaged = indices.filter((index) => index.damaged).length;
  const lines = problems.map(({ file, reason, affected }) => `${file}: ${reason} (${affected})\n`);
  const found = problems.length === 0 ? 'no damage' : counted(problems.length, 'damaged file');
  return `${lines.join('')}${data}: ${counted(indices.length, 'index', 'indices')}, ${String(damaged)} damaged; ${found}\n`;
}

function describeRepository({ repository, snapshots, blobs, bytes, unneeded, problems }: RepositoryReport): string {
  const lines = problems.map(({ file, reason, snapshots: of, parts }) => {
    const affected = [...of.map((name) => `snapshot [${name}]`), ...parts].join(', ');
    return `${file}: ${reason} (${affected === '' ? 'no snapshot that can be read' : affected})\n`;
  });
  const damaged = snapshots.filter((snapshot) => snapshot.damaged).length;
  const partial = snapshots.filter(({ state }) => state === 'PARTIAL').length;
  const counts = [
    `${counted(snapshots.length, 'snapshot')}, ${String(damaged)} damaged, ${String(partial)} made without some of their indices`,
    `${counted(blobs, 'file')} with ${counted(bytes, 'byte')} ${blobs === 1 ? 'is' : 'are'} whole, ${counted(unneeded, 'file')} ${unneeded === 1 ? 'belongs' : 'belong'} to no snapshot`,
    problems.length === 0 ? 'no damage' : counted(problems.length, 'damaged or missing file'),
  ];
  return `${lines.join('')}${repository}: ${counts.join('; ')}\n`;
}

function describeRepair({ found, into, indices, left_out: leftOut }: Repair): string {
  const lines = [
    ...found.problems.map(({ file, reason, affected }) => `${file}: ${reason} (${affected})`),
    ...leftOut.map((file) => `left out: ${file}`),
    ...indices.map(({ name, whole, kept, lost, lost_ids: ids, notes }) => {
      const count = lost === undefined ? 'an unknown number' : String(lost);
      const which = ids.length === 0 ? '' : ` (${ids.join(', ')})`;
      const rest = notes.map((note) => `; ${note}`).join('');
      return `index [${name}]: ${whole ? 'copied whole, ' : ''}${counted(kept, 'document')} kept, ${count} lost${which}${rest}`;
    }),
    `${into}: ${totals(indices)}`,
  ];
  return `${lines.join('\n')}\n`;
}

function totals(indices: Repair['indices']): string {
  const whole = indices.filter((index) => index.whole).length;
  // Without its mapping nothing of an index can be kept.
  const leftOut = indices.filter((index) => !index.whole && index.lost === undefined && index.kept === 0).length;
  const repaired = indices.length - whole - leftOut;
  return `${counted(whole, 'index', 'indices')} copied whole, ${String(repaired)} repaired as far as possible, ${String(leftOut)} left out`;
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
