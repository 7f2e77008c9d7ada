import { X509Certificate, createPrivateKey } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { type SecureContextOptions, createSecureContext } from 'node:tls';

import { fileProblem } from '@sparrow-search/engine';

import { type Config, ConfigError } from '../config.js';

/** The files that TLS is made of. */
export type TlsFiles = Pick<Config, 'tlsCert' | 'tlsKey' | 'tlsClientCa'>;

/** The suites of TLS 1.2 that keep earlier traffic secret when the key is lost; TLS 1.3 has no others. */
const CIPHERS = [
  ...['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384'],
  ...['ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

/** Longest file. One with a chain of certificates has some kilobytes, one with all authorities of an operating system a few hundred. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Most certificates of a chain: clients read no handshake of more than about 100 kB, so that a longer chain would refuse them all. */
const LONGEST_CHAIN = 10;

/** What the files hold, checked. */
export interface TlsMaterial {
  readonly options: SecureContextOptions;
  /** From when on, and until when, the certificate holds. */
  readonly begins: Date;
  readonly expires: Date;
  /** Whom it is for. */
  readonly subject: string;
}

/**
 * Reads the files and checks that they belong together.
 *
 * @throws {ConfigError} with a sentence that names the file
 */
export async function readMaterial({ tlsCert = '', tlsKey = '', tlsClientCa }: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, ca] = await Promise.all([
    read(tlsCert, 'certificate'),
    read(tlsKey, 'private key'),
    tlsClientCa === undefined ? undefined : read(tlsClientCa, 'certificates of who signs clients’'),
  ]);
  const leaf = certificate(cert, tlsCert);
  const length = cert.split('-----BEGIN CERTIFICATE-----').length - 1;
  if (length > LONGEST_CHAIN) {
    throw new ConfigError(
      `${tlsCert} holds ${String(length)} certificates; a chain has at most ${String(LONGEST_CHAIN)}, or no client can read it`,
    );
  }
  if (ca !== undefined && tlsClientCa !== undefined) certificate(ca, tlsClientCa);
  let own;
  try {
    own = createPrivateKey(key);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why =
      code === 'ERR_MISSING_PASSPHRASE'
        ? 'it has a passphrase; keys are read without one'
        : 'it is not a private key in PEM';
    throw new ConfigError(`cannot use the private key ${tlsKey}: ${why}`, { cause });
  }
  if (!leaf.checkPrivateKey(own)) {
    throw new ConfigError(`the private key ${tlsKey} is not that of the first certificate in ${tlsCert}`);
  }
  const options: SecureContextOptions = {
    cert,
    key,
    ...(ca === undefined ? {} : { ca }),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
  };
  try {
    createSecureContext(options);
  } catch (cause) {
    throw new ConfigError(`TLS cannot be set up with ${tlsCert} and ${tlsKey}: ${fileProblem(cause)}`, { cause });
  }
  return { options, begins: new Date(leaf.validFrom), expires: new Date(leaf.validTo), subject: leaf.subject };
}

/** Whether clients accept the certificate at this moment, as far as that depends on its time. */
export function isInTime({ begins, expires }: Pick<TlsMaterial, 'begins' | 'expires'>): boolean {
  const now = Date.now();
  // A time that cannot be read is no reason to keep a certificate from its use.
  return !(begins.getTime() > now) && !(expires.getTime() <= now);
}

/** Which versions of the files there are: another text when one of them was replaced or written to. */
export async function versionOf({ tlsCert, tlsKey, tlsClientCa }: TlsFiles): Promise<string> {
  const versions = [tlsCert, tlsKey, tlsClientCa].map(async (path) => {
    if (path === undefined) return '';
    try {
      const { ino, mtimeMs, size } = await stat(path);
      return [ino, mtimeMs, size].join();
    } catch {
      return 'gone';
    }
  });
  return (await Promise.all(versions)).join(' ');
}

async function read(path: string, what: string): Promise<string> {
  try {
    // A pipe would be waited for without an end, and a device read until there is no memory left.
    const found = await stat(path);
    if (!found.isFile()) throw new Error('it is not a regular file');
    if (found.size > MOST_BYTES) throw new Error(`it has more than ${String(MOST_BYTES)} bytes`);
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(`cannot read the ${what} ${path}: ${fileProblem(cause)}`, { cause });
  }
}

function certificate(pem: string, path: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (cause) {
    throw new ConfigError(`${path} holds no certificate in PEM`, { cause });
  }
}
