// A registry that npm installs from: tarballs in a folder, and manifests of packages that nobody may ask the tarball of.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A package.json, as far as anybody here looks into it. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly [key: string]: unknown;
}

/** A packed package. */
export interface Tarball {
  readonly manifest: Manifest;
  /** The file, compressed: what a download transfers. */
  readonly bytes: Buffer;
  /** Paths of its files, from the package's own folder. */
  readonly files: readonly string[];
}

export interface Registry {
  readonly url: string;
  /** The names of the packages whose tarball was fetched, or asked for, in that order. */
  readonly fetched: readonly string[];
  close(): Promise<void>;
}

/** Reads the tarballs of a folder. */
export async function readTarballs(folder: string): Promise<Tarball[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  return Promise.all(
    names.sort().map(async (name) => {
      const path = join(folder, name);
      const [{ stdout: manifest }, { stdout: list }] = await Promise.all([
        run('tar', ['-xzOf', path, 'package/package.json']),
        run('tar', ['-tzf', path]),
      ]);
      const files = list.split('\n').filter((line) => line !== '' && !line.endsWith('/'));
      return {
        manifest: JSON.parse(manifest) as Manifest,
        bytes: await readFile(path),
        files: files.map((line) => line.slice('package/'.length)),
      };
    }),
  );
}

/**
 * Serves packages on a free port of this machine.
 *
 * @param tarballs the packages that there are
 * @param known manifests of others: npm sees them when it resolves dependencies, their tarballs are not there
 */
export async function startRegistry(tarballs: readonly Tarball[], known: readonly Manifest[]): Promise<Registry> {
  const byName = new Map(tarballs.map((tarball) => [tarball.manifest.name, tarball]));
  const manifests = new Map([...known, ...tarballs.map(({ manifest }) => manifest)].map((one) => [one.name, one]));
  const fetched: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice(1);
    const [, wanted] = /^(.+)\/-\/package\.tgz$/.exec(path) ?? [];
    if (wanted !== undefined) fetched.push(wanted);
    const bytes = wanted === undefined ? document(path) : byName.get(wanted)?.bytes;
    response.writeHead(bytes === undefined ? 404 : 200, {
      'content-type': wanted === undefined ? 'application/json' : 'application/octet-stream',
    });
    response.end(bytes ?? '{"error":"not found"}');
  });

  /** What the registry says of a package: its one version. */
  const document = (name: string): string | undefined => {
    const manifest = manifests.get(name);
    if (manifest === undefined) return undefined;
    const { version } = manifest;
    const bytes = byName.get(name)?.bytes;
    const integrity = bytes && `sha512-${createHash('sha512').update(bytes).digest('base64')}`;
    const dist = { tarball: `${address(server)}/${name}/-/package.tgz`, ...(integrity && { integrity }) };
    return JSON.stringify({
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { ...manifest, dist } },
    });
  };

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: address(server),
    fetched,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function address(server: Server): string {
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}
