// Which tests are in the second tier, and why. This is the one place that lists files; in Rust `#[ignore = "second tier: …"]` says it.
//
// The first tier (`npm test`, `.ci/run`, each pull request) has something of every kind, and takes minutes. The second (`npm run
// test:all`, each night, and before an issue is called resolved) has the rest: what starts many processes, installs something, goes on
// for long, or measures. A test that does the same more often there asks `byTier` how often.
import process from 'node:process';

/** Whether only the first tier runs. Tests that are named to vitest run, whichever tier they are in. */
export const isFirstTier = process.env.SPARROW_TEST_TIER === 'first';

/**
 * What a test takes in the first tier, and what where both run.
 *
 * @template T
 * @param {T} first
 * @param {T} both
 * @returns {T}
 */
export function byTier(first, both) {
  return isFirstTier ? first : both;
}

/**
 * Files of the second tier, each with its reason and with what the first tier has of its kind.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const SECOND_TIER = {
  'test/api/mcp.test.ts':
    '10 s of processor time, a process for each connection over stdio; packages/http/src/mcp has tests of its parts',
  'test/api/openapi-types.test.ts':
    '23 s of processor time, types of all statistics written anew; test/api/openapi.test.ts holds answers against them',
  'test/api/identifiers.test.ts':
    'encodes 2,000 texts and asks 1,200 questions, a minute of processor time; test/api/hybrid.test.ts has the lists that are fused',
  'test/benches/quick-peers-run.test.ts':
    'encodes texts by two models and starts servers, half a minute of processor time; quick-peers.test.ts beside it stays',
  'test/cli/eval.test.ts': '31 s of processor time, a process for each command; tests of packages/evaluation stay',
  'test/cli/demo.test.ts': 'loads a dictionary, half a minute of processor time; test/cli/search.test.ts stays',
  'test/cli/import.test.ts': 'a process for each command; test/cli/commands.test.ts has an import',
  'test/cli/import-columns.test.ts':
    'a process for each command, and gigabytes for some; packages/cli/src/documents/csv-rows.test.ts stays',
  'test/cli/import-continued.test.ts': 'a process for each command; test/cli/commands.test.ts has an import',
  'test/cli/import-meaning.test.ts':
    'a process for each command; packages/cli/src/documents/file-mapping.test.ts stays',
  'test/cli/model-calibrate.test.ts': 'measures two models; packages/evaluation/src/logistic.test.ts stays',
  'test/cli/model-test.test.ts': '15 s of processor time, a process for each command; model-quality.test.ts stays',
  'test/cli/strange-servers.test.ts':
    'a process for each of 150 commands, and a wait of 30 s; test/cli/commands.test.ts stays',
  'test/clients/node.test.ts': 'installs clients from a registry; test/clients/javascript.test.ts stays',
  'test/clients/python.test.ts': 'installs clients from a registry; test/clients/javascript.test.ts stays',
  'test/e2e/cluster-faults.test.ts': 'faults of a cluster; tests of packages/cluster stay',
  'test/e2e/cluster-migrate.test.ts': 'needs a cluster; tests of packages/cluster stay',
  'test/e2e/cluster-nodes.test.ts': 'starts three nodes of a cluster; tests of packages/cluster stay',
  'test/e2e/cluster-passages.test.ts': 'kills servers over a cluster; test/contract/engine-semantic.test.ts stays',
  'test/e2e/cluster-start.test.ts': 'starts a server many times; tests of packages/cluster stay',
  'test/e2e/console.test.ts': 'starts a browser; tests of packages/console stay',
  'test/e2e/demo.test.ts': 'loads a whole dictionary; packages/cli/src has tests of its parts',
  'test/e2e/deploy.test.ts': 'what the pages about deployment start; test/e2e/server.test.ts stays',
  'test/e2e/documentation.test.ts':
    'commands of the documentation; docs/start.md is run by test/documentation/examples.test.ts',
  'test/e2e/examples.test.ts': 'installs and runs the examples; test/library stays',
  'test/e2e/limits.test.ts': 'fills disks, and starts servers under limits; test/documentation/limits.test.ts stays',
  'test/e2e/model-change-crash.test.ts': 'kills a server at many moments; test/e2e/crash.test.ts stays',
  'test/e2e/silent.test.ts': 'needs a network of its own; nothing else is like it',
  'test/e2e/snapshot-crash.test.ts': 'kills a server at many moments; test/e2e/crash.test.ts stays',
  'test/e2e/stopping.test.ts':
    'starts and stops a server at many moments; test/e2e/cancellation.test.ts and crash.test.ts stay',
  'test/packaging/install.test.ts': 'packs and installs the packages; test/packaging/release.test.ts stays',
  'test/rest-suites/suites.test.ts': 'needs a public suite, where SPARROW_REST_SUITES says',
};

/**
 * Files of the second tier that measure time or memory. They run one after another when everything else is over.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const MEASURING = {
  'packages/http/src/security/full-store.test.ts': 'for how long a change of 100,000 keys holds the event loop',
  'test/api/expensive-requests.test.ts': 'seconds and memory of requests that ask for hours and gigabytes',
  'test/e2e/event-loop.test.ts': 'for how long the event loop is held',
  'test/load/load.test.ts': 'refusals and latency under load',
  'test/soak/soak.test.ts': 'growth over time; the first tier has its verdict, and a few seconds of it',
};

/** Suites of the benchmarks that the first tier runs small: they compile nothing. */
export const FIRST_SUITES = ['hybrid', 'words'];
