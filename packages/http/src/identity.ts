import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { INTERFACE_VERSION, VERSION } from '@sparrow-search/endpoints';

import { StoredFileError, parseStored, readIfPresent, replaceFile } from './durable-file.js';
import { seal } from './sealed-file.js';

/** What `GET /` says about this installation. */
export interface Identity {
  /** Name of the node, as all listings of nodes have it. */
  readonly name: string;
  readonly clusterName: string;
  readonly clusterUuid: string;
}

const FORMAT = 1;
const LOSS = 'under a new identity';

/** The name of the one node; the engine has the same in its listings. */
export const NODE_NAME = 'sparrow';

/**
 * Reads the identity if there is one, and makes none.
 *
 * @throws {StoredFileError}
 */
export async function checkIdentity(data: string): Promise<void> {
  const path = join(data, 'identity.json');
  const text = await readIfPresent(path, LOSS);
  if (text !== undefined) readUuid(path, text);
}

/** Reads the installation's identity, or makes it at the first start. */
export async function readIdentity(data: string): Promise<Identity> {
  const path = join(data, 'identity.json');
  const text = await readIfPresent(path, LOSS);
  let clusterUuid: string;
  if (text === undefined) {
    clusterUuid = randomBytes(16).toString('base64url');
    await replaceFile(path, seal({ format: FORMAT, clusterUuid }));
  } else {
    clusterUuid = readUuid(path, text);
  }
  return { name: NODE_NAME, clusterName: 'sparrow', clusterUuid };
}

function readUuid(path: string, text: string): string {
  const file = parseStored(path, text, { format: FORMAT, members: ['format', 'clusterUuid'], loss: LOSS });
  if (typeof file['clusterUuid'] !== 'string' || file['clusterUuid'] === '') {
    throw StoredFileError.damaged(path, 'it does not hold [clusterUuid]', LOSS);
  }
  return file['clusterUuid'];
}

/** The body of `GET /`. */
export function describe(identity: Identity): object {
  return {
    name: identity.name,
    cluster_name: identity.clusterName,
    cluster_uuid: identity.clusterUuid,
    version: {
      number: INTERFACE_VERSION,
      build_flavor: 'default',
      build_type: 'sparrow',
      build_hash: VERSION,
      build_date: '2026-11-21T00:00:00.000Z',
      build_snapshot: false,
      lucene_version: '9.12.2',
      minimum_wire_compatibility_version: '7.17.0',
      minimum_index_compatibility_version: '7.0.0',
    },
    tagline: 'You Know, for Search',
  };
}
