// A server in a network of its own, from which a packet could leave: prints what it wrote and sent while it did its work.
//
//   unshare --user --map-root-user --net --mount node silent-world.mjs CLI FOLDER [MODELS]
//
// `out0` is an interface whose packets the kernel counts and which leads nowhere; the name server is beyond it too. FOLDER gets the
// data directory, an empty home and an empty temporary folder; MODELS is a folder with the model `odd-mlm`, which runs in ONNX
// Runtime.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';

const [, , cli, folder, models] = process.argv;
const ip = (...args) => execFileSync('ip', args, { stdio: ['ignore', 'pipe', 'pipe'] });

const resolvers = join(folder, 'resolv.conf');
writeFileSync(resolvers, 'nameserver 10.99.0.2\noptions timeout:1 attempts:1\n');
execFileSync('mount', ['--bind', resolvers, '/etc/resolv.conf']);
ip('link', 'set', 'lo', 'up');
ip('link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'out1');
for (const name of ['out0', 'out1']) ip('link', 'set', name, 'addrgenmode', 'none', 'arp', 'off', 'up');
ip('addr', 'add', '10.99.0.1/24', 'dev', 'out0');
ip('route', 'add', 'default', 'via', '10.99.0.2');

/** Packets that have left by `out0`. */
function sent() {
  const line = readFileSync('/proc/net/dev', 'utf8')
    .split('\n')
    .find((it) => it.includes('out0:'));
  return Number(line.split(':')[1].trim().split(/\s+/u)[9]);
}

const files = (at) => readdirSync(at, { recursive: true }).map(String);

const places = Object.fromEntries(['data', 'home', 'tmp'].map((name) => [name, join(folder, name)]));
for (const place of Object.values(places)) mkdirSync(place, { recursive: true });
const env = {
  PATH: process.env.PATH,
  HOME: places.home,
  TMPDIR: places.tmp,
  XDG_CACHE_HOME: join(places.home, 'cache'),
};
const args = [cli, '--port', '0', '--data', places.data, ...(models === undefined ? [] : ['--models', models])];
const server = spawn(process.execPath, args, { env, cwd: places.home, stdio: ['ignore', 'pipe', 'pipe'] });
const exited = new Promise((resolve) => server.on('exit', resolve));
let output = '';
const url = await new Promise((resolve, reject) => {
  for (const stream of [server.stdout, server.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      output += `${line}\n`;
      const event = line.startsWith('{') ? JSON.parse(line) : {};
      if (event.msg === 'ready') resolve(event.url);
    });
  }
  void exited.then((code) => reject(new Error(`the server ended with ${code}: ${output}`)));
});
const authorization = `ApiKey ${readFileSync(join(places.data, 'owner.key'), 'utf8').trim()}`;

async function call(method, path, body) {
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await fetch(url + path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
  return JSON.parse(text);
}

const runtimeIsLoaded = () => readFileSync(`/proc/${server.pid}/maps`, 'utf8').includes('onnxruntime');
const report = { sentAtFirst: sent(), loadedAtStart: runtimeIsLoaded() };

// The main job, with the embedded model.
await call('PUT', '/_ingest/pipeline/tokens', {
  processors: [
    { inference: { model_id: '.elser_model_2', input_output: [{ input_field: 'body', output_field: 'tokens' }] } },
  ],
});
await call('PUT', '/things', {
  mappings: { properties: { tokens: { type: 'sparse_vector' }, body: { type: 'text' } } },
});
await call('PUT', '/things/_doc/1?pipeline=tokens&refresh=true', { body: 'someone who collects stamps' });
const query = { sparse_vector: { field: 'tokens', inference_id: '.elser_model_2', query: 'stamps' } };
report.hits = (await call('POST', '/things/_search', { query })).hits.total.value;
report.loadedByEmbedded = runtimeIsLoaded();
if (models !== undefined) {
  await call('POST', '/_ml/trained_models/odd-mlm/deployment/_start?wait_for=started');
  const inferred = await call('POST', '/_ml/trained_models/odd-mlm/_infer', {
    docs: [{ text_field: 'old red stamps' }],
  });
  report.inferred = inferred.inference_results.length;
  report.loadedByOwn = runtimeIsLoaded();
}
// What reports home does so from a thread of its own, soon after it was loaded.
await new Promise((resolve) => setTimeout(resolve, 3000));
report.sent = sent() - report.sentAtFirst;
server.kill('SIGTERM');
report.code = await exited;
report.written = [...files(places.home), ...files(places.tmp)];
report.beside = readdirSync(folder).sort();

// That a packet is counted at all.
const before = sent();
await fetch('http://nowhere.example').catch(() => undefined);
report.counted = sent() - before;
console.log(JSON.stringify(report));
