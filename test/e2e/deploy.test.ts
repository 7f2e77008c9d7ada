// What docs/deploy says to hosts is true of the server: metrics that a dashboard shows, paths that are probed, settings that are given.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describeSettings } from '@sparrow-search/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { readPage } from '../support/prometheus.js';
import { type RunningServer, startServer } from '../support/server.js';

const read = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../docs/deploy/${name}`, import.meta.url)), 'utf8');

const FILES = ['Dockerfile', 'compose.yaml', 'kubernetes/sparrow.yaml', 'sparrow.service'];

/** What a dashboard has of one of its panels. */
interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly datasource?: object;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string; readonly legendFormat: string }[];
}

interface Dashboard {
  readonly schemaVersion: number;
  readonly uid: string;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
}

const dashboard = JSON.parse(await read('grafana-dashboard.json')) as Dashboard;
const targets = dashboard.panels.flatMap((panel) => panel.targets ?? []);

interface Checked {
  readonly code: number | string;
  readonly output: string;
}

/** Runs Prometheus' own checker: Debian has it in the package `prometheus`. */
function promtool(args: readonly string[], input = ''): Promise<Checked> {
  const name = process.env['PROMTOOL'] ?? 'promtool';
  return new Promise((resolve) => {
    const child = execFile(name, [...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? 1), output: stdout + stderr });
    });
    child.stdin?.on('error', () => undefined).end(input);
  });
}

const hasPromtool = (await promtool(['--version'])).code === 0;
if (!hasPromtool) {
  console.warn('skipped: rules of Prometheus: there is no promtool; put it on the PATH, or its path in PROMTOOL');
}

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

describe('the dashboard as Grafana reads it', () => {
  it('has panels with ids, places and queries of their own, over the data source that is chosen', () => {
    const { panels, templating, schemaVersion, uid } = dashboard;
    // Grafana migrates older versions by rules of its own: what is below holds from this one on.
    expect(schemaVersion).toBeGreaterThanOrEqual(36);
    expect(uid).toMatch(/^[\w-]{1,40}$/);
    const variables = new Set(templating.list.map(({ name }) => name));
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const taken = new Set<string>();
    for (const { type, title, gridPos, datasource, targets: asked = [] } of panels) {
      expect(['row', 'timeseries', 'stat', 'gauge', 'bargauge', 'heatmap', 'table', 'text'], title).toContain(type);
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(taken, `${title} lies over another panel`).not.toContain(`${String(x)},${String(y)}`);
          taken.add(`${String(x)},${String(y)}`);
        }
      }
      expect(new Set(asked.map(({ refId }) => refId)).size, title).toBe(asked.length);
      if (type !== 'row') expect(datasource, title).toEqual({ type: 'prometheus', uid: '${source}' });
    }
    const used = [...JSON.stringify(panels).matchAll(/\$\{?(\w+)/g)].map(([, name]) => name ?? '');
    expect(used.filter((name) => !name.startsWith('__') && !variables.has(name))).toEqual([]);
  });
});

describe('the rules for Prometheus', () => {
  it('use metrics and labels that there are', async () => {
    const page = readPage((await server.request('GET', '/metrics')).text);
    const rules = await read('prometheus-rules.yaml');
    const used = [...rules.matchAll(/\bsparrow_\w+/g)].map(([name]) => name);
    expect(used.length).toBeGreaterThan(8);
    expect(used.filter((name) => !page.has(name))).toEqual([]);
    for (const [, name = '', label = ''] of rules.matchAll(/\b(sparrow_\w+)\{(\w+)!?=/g)) {
      expect(Object.keys(page.get(name)?.samples[0]?.labels ?? {}), `${name} as the rules use it`).toContain(label);
    }
  });
});

describe.skipIf(!hasPromtool)('promtool', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sparrow-rules-'));
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
  });
  const RULES = fileURLToPath(new URL('../../docs/deploy/prometheus-rules.yaml', import.meta.url));

  it('reads the rules', async () => {
    const { code, output } = await promtool(['check', 'rules', '--lint=all', '--lint-fatal', RULES]);
    expect(code, output).toBe(0);
  });

  it('finds nothing to say about the page of metrics', async () => {
    const { text } = await server.request('GET', '/metrics');
    expect(await promtool(['check', 'metrics'], text)).toEqual({ code: 0, output: '' });
  });

  it('reads every query of the dashboard', async () => {
    const rules = targets.map(({ expr }, at) => {
      const asked = expr.replaceAll(/\$__(?:rate_)?interval/g, '5m').replaceAll(/\$\{?instance\}?/g, '.*');
      return { record: `query:${String(at)}`, expr: asked };
    });
    const file = join(folder, 'dashboard.yaml');
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    const { code, output } = await promtool(['check', 'rules', file]);
    expect(code, output).toBe(0);
    expect(output).toContain(`${String(targets.length)} rules found`);
  });

  it('sees alerts that fire when they should, and not before', async () => {
    const series = (name: string, values: string): object => ({ series: name, values });
    const firing = (eval_time: string, ...names: string[]): object => ({
      ...{ expr: 'count by (alertname) (ALERTS{alertstate="firing"})', eval_time },
      exp_samples: names.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
    });
    const tests = {
      interval: '1m',
      input_series: [
        series('sparrow_http_requests_total{instance="a",status="2xx"}', '0+60x120'),
        series('sparrow_http_requests_total{instance="a",status="5xx"}', '0x10 1+1x110'),
        series('sparrow_lane_rejected_total{instance="a",lane="write"}', '0x10 5+5x20 105x90'),
        series('sparrow_snapshots_total{instance="a",end="failed"}', '0x10 1x110'),
        series('sparrow_background_failing{instance="a",task="merge"}', '0x10 2x30 0x80'),
        series('sparrow_indices_refusing_writes{instance="a",reason="flood_stage"}', '0x10 0x30 1x80'),
        series('up{instance="a",job="sparrow"}', '1x115 0x5'),
      ],
      promql_expr_test: [
        firing('10m'),
        firing(
          ...(['25m', 'SparrowServerErrors', 'SparrowOverloaded'] as const),
          ...(['SparrowSnapshotFailed', 'SparrowBackgroundFails'] as const),
        ),
        firing('90m', 'SparrowServerErrors', 'SparrowRefusesWrites'),
        firing('120m', 'SparrowServerErrors', 'SparrowRefusesWrites', 'SparrowDown'),
      ],
    };
    const file = join(folder, 'alerts.yaml');
    await writeFile(file, JSON.stringify({ rule_files: [RULES], tests: [tests] }));
    const { code, output } = await promtool(['test', 'rules', file]);
    expect(code, output).toBe(0);
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
