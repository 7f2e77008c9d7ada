import { existsSync } from 'node:fs';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

import { type Browser, type Page, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** Where a Chromium is, if there is one: `CHROMIUM`, or what the system has by that name. */
export function findChromium(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const found = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return [process.env['CHROMIUM'] ?? '', ...found].find((path) => path !== '' && existsSync(path));
}

/** Starts a browser without a window. Its sandbox needs rights that containers rarely give; it only sees pages of ours. */
export function launch(executablePath: string): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core finds wrong with a page, each as one line: the rule, and the first places. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: any[] }> } };
    const found = (await axe.run()).violations;
    return found.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.slice(0, 3).map((node: any) => `${node.html.slice(0, 160)} (${node.failureSummary})`)}`,
    );
  });
}
