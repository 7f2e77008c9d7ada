// Updates, deletions and copies by query. Each handles only documents of its own client, in indices that the client leaves alone until it ends.
const POLL_MS = 20;

/** A client's documents in an index that a search for `from` and above finds: `[id, register]`. */
function ownDocuments(client, index, from) {
  return [...index.docs].filter(([id, { latest }]) => {
    if (!id.startsWith(`c${client.number}-`) || latest === null) return false;
    return JSON.parse(latest.source).n >= from;
  });
}

const settledFor = (client, index) =>
  [...index.docs].every(([id, register]) => !id.startsWith(`c${client.number}-`) || register.settled);

function candidates(client) {
  return client.model.live.filter(
    (index) =>
      index.available && index.shape === 'current' && !index.lockedBy.has(client.number) && settledFor(client, index),
  );
}

const ownedBy = (client, from) => ({
  bool: { filter: [{ term: { owner: `c${client.number}` } }, { range: { n: { gte: from } } }] },
});

/** A by-query request reads what was refreshed. */
function refresh(client, index) {
  return client.world.perform(client, { method: 'POST', path: `/${index.name}/_refresh`, indices: [index] });
}

/** Decides for the documents of a job by its answer. */
function settleJob(world, index, effects, answer, counted, disturbed, restarted = false) {
  const complete =
    answer?.failures?.length === 0 &&
    counted(answer) === effects.length &&
    !answer.version_conflicts &&
    !answer.canceled;
  if (!complete && !disturbed) {
    world.fail('a job did not do what it should', { index, expected: effects.length, answer: JSON.stringify(answer) });
  }
  for (const { register, before } of effects) {
    if (!complete) register.doubt();
    else if (register.oldest === null) register.acknowledge();
    // After a restart its last documents may have been written twice.
    else register.acknowledge({ version: restarted || !before?.version ? undefined : before.version + 1 });
  }
}

function begin(documents, state) {
  return documents.map(([id, register]) => {
    const before = register.latest;
    register.begin(state(id, before));
    return { id, register, before };
  });
}

async function updateByQuery(client) {
  const { random, model, world } = client;
  const index = random.pick(candidates(client).filter(({ dynamic }) => dynamic));
  if (index === undefined || !(await refresh(client, index)) || !candidates(client).includes(index)) return false;
  const pipeline = model.pipelines.get(`p-${client.number}`);
  const mark = pipeline?.settled && random.chance(0.7) ? pipeline.latest : null;
  const from = random.below(600);
  const effects = begin(ownDocuments(client, index, from), (_, before) => ({
    source: mark === null ? before.source : JSON.stringify({ ...JSON.parse(before.source), mark }),
    version: undefined,
    seqNo: undefined,
  }));
  await world.perform(client, {
    method: 'POST',
    path: `/${index.name}/_update_by_query?conflicts=proceed${mark === null ? '' : `&pipeline=p-${client.number}`}`,
    body: { query: ownedBy(client, from) },
    registers: effects.map(({ register }) => register),
    indices: [index],
    ids: effects.map(({ id }) => id),
    settle: ({ body }, disturbed) => settleJob(world, index, effects, body, ({ updated }) => updated, disturbed),
  });
  return true;
}

async function deleteByQuery(client) {
  const { random, world } = client;
  const index = random.pick(candidates(client));
  if (index === undefined || !(await refresh(client, index)) || !candidates(client).includes(index)) return false;
  const from = random.below(1000);
  const effects = begin(ownDocuments(client, index, from), () => null);
  await world.perform(client, {
    method: 'POST',
    path: `/${index.name}/_delete_by_query?conflicts=proceed`,
    body: { query: ownedBy(client, from) },
    registers: effects.map(({ register }) => register),
    indices: [index],
    ids: effects.map(({ id }) => id),
    settle: ({ body }, disturbed) => settleJob(world, index, effects, body, ({ deleted }) => deleted, disturbed),
  });
  return true;
}

/** Chooses source and destination of a copy and begins its effects. */
async function beginCopy(client) {
  const { random } = client;
  const usable = () => candidates(client).filter(({ dynamic }) => dynamic);
  const source = random.pick(usable());
  const target = random.pick(usable().filter((index) => index !== source));
  if (target === undefined || !(await refresh(client, source))) return undefined;
  if (!usable().includes(source) || !usable().includes(target)) return undefined;
  const from = random.below(400);
  const effects = ownDocuments(client, source, from).map(([id, { latest }]) => {
    const register = target.doc(id);
    const before = register.latest;
    register.begin({ source: latest.source, version: undefined, seqNo: undefined });
    return { id, register, before };
  });
  return { source, target, from, effects };
}

const copied = ({ created, updated }) => created + updated;

async function reindex(client) {
  const copy = await beginCopy(client);
  if (copy === undefined) return false;
  const { source, target, from, effects } = copy;
  await client.world.perform(client, {
    method: 'POST',
    path: '/_reindex',
    body: {
      conflicts: 'proceed',
      source: { index: source.name, query: ownedBy(client, from) },
      dest: { index: target.name },
    },
    registers: effects.map(({ register }) => register),
    indices: [target, source],
    ids: effects.map(({ id }) => id),
    settle: ({ body }, disturbed) => settleJob(client.world, target, effects, body, copied, disturbed),
  });
  return true;
}

/** A slow copy as a task; it goes on after a crash. The client leaves its documents of both indices alone until it ends. */
async function reindexTask(client) {
  if (client.job !== undefined) return false;
  const copy = await beginCopy(client);
  if (copy === undefined) return false;
  const { source, target, from, effects } = copy;
  const job = { source, target, effects, round: client.world.round, epochs: [source.epoch, target.epoch] };
  for (const index of [source, target]) index.lockedBy.add(client.number);
  client.job = job;
  const done = await client.world.perform(client, {
    method: 'POST',
    path: '/_reindex?wait_for_completion=false&requests_per_second=20',
    body: {
      conflicts: 'proceed',
      source: { index: source.name, size: 3, query: ownedBy(client, from) },
      dest: { index: target.name },
    },
    registers: effects.map(({ register }) => register),
    indices: [target, source],
    ids: effects.map(({ id }) => id),
    settle: ({ body }) => {
      job.task = body.task;
    },
  });
  // Without an answer it may run or not: the registers are in doubt, the indices free again after the restart.
  if (!done && !client.world.stopping) endJob(client);
  return true;
}

function endJob(client) {
  for (const index of [client.job.source, client.job.target]) index.lockedBy.delete(client.number);
  client.job = undefined;
}

/** Asks for a client's task; decides for its documents once it has ended. */
export async function pollTask(client) {
  const { job, world } = client;
  if (job?.task === undefined) return false;
  let answer;
  try {
    answer = await world.send('GET', `/_tasks/${job.task}`);
  } catch {
    return false;
  }
  if (answer.status >= 500 && world.stopping) return false;
  if (answer.status === 200 && !answer.body.completed) return false;
  const { source, target, effects, epochs } = job;
  const disturbed =
    ![source, target].every((index, n) => index.available && index.epoch === epochs[n]) || job.disturbed === true;
  target.note({ text: `r${world.round} c${client.number} GET _tasks/${job.task} -> ${answer.status} ${answer.text}` });
  if (answer.status !== 200) {
    world.fail('task lost', { index: target, task: job.task, answer: answer.text });
    for (const { register } of effects) register.doubt();
  } else settleJob(world, target, effects, answer.body.response, copied, disturbed, job.round !== world.round);
  endJob(client);
  return true;
}

/** After a restart: lets every task end, and settles those that clients know. */
export async function finishTasks(clients, send, boundMs = 20_000) {
  const until = performance.now() + boundMs;
  for (;;) {
    const { body } = await send('GET', '/_tasks?actions=*reindex');
    const running = Object.values(body.nodes ?? {}).flatMap(({ tasks }) => Object.keys(tasks));
    for (const task of running) await send('POST', `/_reindex/${task}/_rethrottle?requests_per_second=-1`);
    if (running.length === 0) break;
    if (performance.now() > until) throw new Error(`tasks do not end: ${running.join(', ')}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  for (const client of clients) {
    if (client.job === undefined) continue;
    if (client.job.task === undefined) endJob(client);
    else if (!(await pollTask(client)))
      throw new Error(`the task ${client.job.task} has neither ended nor is it listed`);
  }
}

/** `[weight, name, operation]` */
export const JOB_OPERATIONS = [
  [3, 'updateByQuery', updateByQuery],
  [2, 'deleteByQuery', deleteByQuery],
  [3, 'reindex', reindex],
  [3, 'reindexTask', reindexTask],
];
