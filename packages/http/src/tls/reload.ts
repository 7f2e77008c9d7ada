import type { Server } from 'node:https';

import type { Logger } from '../log.js';
import { type TlsFiles, type TlsMaterial, isInTime, readMaterial, versionOf } from './material.js';

/** Milliseconds between two looks at the files. Watching is no use where they are links into a folder that is swapped. */
const LOOK_MS = 2000;

/** Days before its end from which on the log warns of a certificate. */
const WARN_DAYS = 14;

/**
 * Puts new certificates in force when the files change; connections that are there stay as they are. Files that cannot be used
 * are logged, and the ones before stay in force: the two files of a pair are never replaced at once. So is a certificate that no client
 * accepts at its time, as long as they accept the one before.
 *
 * @param version that of the files that are in force
 * @param material what they hold
 * @returns ends it
 */
export function reloadOnChange(
  server: Server,
  files: TlsFiles,
  version: string,
  material: TlsMaterial,
  log: Logger,
): () => void {
  let seen = version;
  let inForce = material;
  let looking = false;
  const look = async (): Promise<void> => {
    const now = await versionOf(files);
    if (now === seen) return;
    seen = now;
    try {
      const read = await readMaterial(files);
      if (!isInTime(read) && isInTime(inForce)) {
        const [from, until] = [read.begins, read.expires].map(instant);
        throw new Error(`the certificate ${String(files.tlsCert)} holds from ${String(from)} until ${String(until)}`);
      }
      server.setSecureContext(read.options);
      inForce = read;
      log.info('TLS certificate replaced', described(read));
      warnOfEnd(read, log);
    } catch (error) {
      log.error('the new TLS certificate cannot be used; the previous one stays in use', {
        error: (error as Error).message,
      });
    }
  };
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look().finally(() => {
      looking = false;
    });
  }, LOOK_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}

export function described({ subject, expires }: TlsMaterial): { subject: string; expires: string } {
  return { subject, expires: instant(expires) };
}

function instant(date: Date): string {
  return Number.isNaN(date.getTime()) ? 'unknown' : date.toISOString();
}

/** Says when a certificate is about to end, or has. */
export function warnOfEnd(material: TlsMaterial, log: Logger): void {
  const days = (material.expires.getTime() - Date.now()) / 86_400_000;
  if (days < WARN_DAYS)
    log.warn(days < 0 ? 'the TLS certificate has expired' : 'the TLS certificate expires soon', described(material));
}
