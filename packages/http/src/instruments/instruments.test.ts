import process from 'node:process';

import { afterEach, describe, expect, it, vi } from 'vitest';

import { Instruments } from './instruments.js';

describe('the page of figures', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('has what it can when the system tells no memory, as when no file descriptor is left', async () => {
    vi.spyOn(process, 'memoryUsage').mockImplementation(() => {
      throw new Error('EMFILE: too many open files, uv_resident_set_memory');
    });
    const page = await new Instruments().page(true, undefined);
    expect(page).toContain('sparrow_ready 1');
    expect(page).toContain('sparrow_process_uptime_seconds');
    expect(page).not.toContain('sparrow_process_resident_memory_bytes');
    vi.restoreAllMocks();
    expect(await new Instruments().page(true, undefined)).toMatch(/sparrow_process_resident_memory_bytes \d+/u);
  });
});
