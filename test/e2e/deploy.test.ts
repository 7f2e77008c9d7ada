// What docs/deploy says to hosts is true of the server: metrics that a dashboard shows, paths that are probed, settings that are given.
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { describeSettings } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { readPage } from '../support/prometheus.js';
import { type RunningServer, startServer } from '../support/server.js';

const read = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../docs/deploy/${name}`, import.meta.url)), 'utf8');

const FILES = ['Dockerfile', 'compose.yaml', 'kubernetes/sparrow.yaml', 'sparrow.service'];

let server: RunningServer;

beforeAll(async () => {
  server = await startServer({ args: ['--deploy-at-start', 'false', '--metrics-open'] });
  // Figures by route and by reason are there once there was such a request.
  await server.request('GET', '/_cat/indices');
  await server.request('GET', '/_cat/indices', undefined, { apiKey: null });
});

afterAll(async () => {
  await server.stop();
});

describe('the dashboard', () => {
  it('shows metrics and labels that there are', async () => {
    const page = readPage((await server.request('GET', '/metrics')).text);
    const dashboard = JSON.parse(await read('grafana-dashboard.json')) as {
      panels: { targets?: { expr: string; legendFormat: string }[] }[];
    };
    const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);
    expect(targets.length).toBeGreaterThan(20);
    for (const { expr, legendFormat } of targets) {
      const families = [...expr.matchAll(/sparrow_\w+/g)].map(([name]) => page.get(name.replace(/_bucket$/, '')));
      expect(families, expr).not.toContain(undefined);
      const labels = new Set(
        families.flatMap((family) => family?.samples ?? []).flatMap((it) => Object.keys(it.labels)),
      );
      for (const [, name] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
        expect([...labels], `${legendFormat} of ${expr}`).toContain(name);
        expect(expr).toMatch(new RegExp(`by \\([^)]*\\b${String(name)}\\b`));
      }
    }
  });
});

describe('the files for containers and hosts', () => {
  it('give settings that there are', async () => {
    const known = new Set(describeSettings().flatMap(({ variable, flag }) => [variable, flag]));
    const text = (await Promise.all(FILES.map(read))).join('\n');
    const variables = [...text.matchAll(/\bSPARROW_[A-Z_]+\b/g)].map(([name]) => name);
    const flags = [...text.matchAll(/"(--[a-z-]+)"/g)].map(([, flag]) => flag);
    expect(variables).toContain('SPARROW_API_KEY_FILE');
    expect(flags).toContain('--allow-remote');
    expect([...variables, ...flags].filter((name) => !known.has(name))).toEqual([]);
  });

  it('probe paths that answer without a key', async () => {
    const text = (await Promise.all(FILES.map(read))).join('\n');
    const paths = new Set([...text.matchAll(/(?:path: |path:')(\/_\w+)/g)].map(([, path]) => path ?? ''));
    expect([...paths].toSorted()).toEqual(['/_health', '/_live', '/_ready']);
    for (const path of paths) {
      expect((await server.request('GET', path, undefined, { apiKey: null })).status).toBe(200);
    }
  });
});
