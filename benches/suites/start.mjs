// From the start of the process to the first answer with all documents on disk, and how memory grows with what is touched.
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { createClient, findApiKey } from '../../scripts/lib/api-client.mjs';
import { usage } from '../../scripts/lib/server-process.mjs';
import { FIELD, INDEX, MODEL, fill, sparrowFolder, startProcess, startSparrow } from '../serving/servers.mjs';

export const title = 'Start with documents on disk';

const SIZES = {
  smoke: { documents: 200, starts: 1, questions: 20 },
  quick: { documents: 20_000, starts: 5, questions: 200 },
  full: { documents: 200_000, starts: 7, questions: 1000 },
};

/** @returns {Promise<{rows: object[], notes?: string[]}>} */
export async function run(context) {
  const size = SIZES[context.size];
  const data = sparrowFolder(context, size.documents);
  const questions = await context.questions(size.questions);
  const expected = await prepare(context, data, size.documents, questions[0]);

  const starts = [];
  for (let round = 0; round < size.starts; round += 1) {
    const { server, answer, ms } = await startAndAsk(data, questions[0]);
    const memory = usage(server.pid);
    await server.stop();
    if (JSON.stringify(hitsOf(answer)) !== JSON.stringify(expected)) throw new Error('a restart changes the answer');
    starts.push({ ms, readyMs: server.readyMs, memory });
  }
  starts.sort((a, b) => a.ms - b.ms);
  const median = starts[starts.length >> 1];
  const touched = await touch(data, questions);
  const megabytes = (bytes) => Math.round(bytes / 1e5) / 10;
  const plain = { against: '-', peer: null, ratio: null, checked: 'the first answer is that of before the stop' };
  const rows = [
    {
      ...plain,
      what: `start with ${size.documents} documents to first answer, p50`,
      unit: 'ms',
      sparrow: median.ms,
      target: { at_most: 1000 },
      met: median.ms <= 1000,
      detail: { slowest: starts.at(-1).ms, readyMs: median.readyMs, starts: starts.map(({ ms }) => ms) },
    },
    ...touched.map(({ after, anonymous, files }) => ({
      ...plain,
      what: `memory after ${after} questions, anonymous`,
      unit: 'MB',
      sparrow: megabytes(anonymous),
      target: null,
      met: null,
      detail: { mappedFilesMB: megabytes(files), indexOnDiskMB: megabytes(diskBytes(data)) },
    })),
  ];
  return {
    rows,
    notes: ['clean stop before each start; files are in the page cache, as after a restart of the process'],
  };
}

/** Loads the documents unless they are there, and answers the question as a server does that has them open already. */
async function prepare(context, data, documents, question) {
  const texts = await context.texts(documents);
  const server = await startSparrow(data);
  try {
    await fill(context, server, texts);
    return hitsOf(await server.request('POST', `/${INDEX}/_search`, ask(question)));
  } finally {
    await server.stop();
  }
}

/** Asks over and over from the moment the process starts. */
async function startAndAsk(data, question) {
  const begun = performance.now();
  const server = await startProcess(data);
  const request = createClient({ url: server.url, apiKey: findApiKey(data) });
  const answer = await request('POST', `/${INDEX}/_search`, ask(question));
  return { server, answer, ms: performance.now() - begun };
}

/** Memory when nothing was asked, after one question, and after many. */
async function touch(data, questions) {
  const server = await startProcess(data);
  const request = createClient({ url: server.url, apiKey: findApiKey(data) });
  const seen = [];
  const note = (after) => {
    const { anonymous, resident } = usage(server.pid);
    seen.push({ after, anonymous, files: resident - anonymous });
  };
  try {
    note(0);
    for (const [number, question] of questions.entries()) {
      await request('POST', `/${INDEX}/_search`, ask(question));
      if (number === 0) note(1);
    }
    note(questions.length);
    return seen;
  } finally {
    await server.stop();
  }
}

function ask(question) {
  return { query: { sparse_vector: { field: FIELD, inference_id: MODEL, query: question } } };
}

function hitsOf({ hits }) {
  return hits.hits.map(({ _id: id, _score: score }) => [id, score]);
}

function diskBytes(folder) {
  return readdirSync(folder, { recursive: true })
    .map((name) => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
}
