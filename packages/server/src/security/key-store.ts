import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import { StoredFileError, parseStored, readIfPresent, replaceFile } from '../durable-file.js';
import { seal } from '../sealed-file.js';
import { OWNER_ROLES, type Roles } from './roles.js';

/** Version of the file's layout; an unknown one is refused rather than guessed at. */
const FORMAT = 1;

/** The user that every key belongs to: keys are Sparrow's only identities. */
export const OWNER = 'owner';

/** One API key as it is stored. The secret itself is not. */
export interface ApiKey {
  readonly id: string;
  readonly name: string;
  /** SHA-256 of the secret, hex. A fast hash suffices: secrets are 128 random bits or more, never chosen by people. */
  readonly hash: string;
  /** The key that may do everything, and that made the others. */
  readonly owner: boolean;
  readonly username: string;
  readonly creation: number;
  readonly expiration?: number;
  readonly invalidated: boolean;
  readonly invalidation?: number;
  readonly roles: Roles;
  /** The roles of the keys that this one was made by, beyond which it may do nothing. Absent: an owner key made it. */
  readonly limitedBy?: readonly Roles[] | undefined;
  /** Role descriptors as they were sent, which is how they are shown again. */
  readonly roleDescriptors: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A secret that is shown once, with the form that goes into the `Authorization` header. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly secret: string;
  /** base64 of `id:secret`. */
  readonly encoded: string;
}

export interface NewKey {
  readonly name: string;
  readonly expiration?: number;
  readonly roles: Roles;
  readonly limitedBy?: readonly Roles[] | undefined;
  readonly roleDescriptors: Readonly<Record<string, unknown>>;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What an update gives a key; what is absent stays. */
export interface KeyChange {
  readonly roles?: Roles;
  /** Goes with `roles`: undefined takes the limits away. */
  readonly limitedBy?: readonly Roles[] | undefined;
  readonly roleDescriptors?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly expiration?: number;
}

/**
 * The API keys, in memory and in `security/api_keys.json` of the data directory. They guard whichever engine is behind the
 * server, so they live in front of it. Changes are durable before they are acknowledged, one at a time.
 */
export class KeyStore {
  readonly #path: string;
  readonly #keys: Map<string, ApiKey>;
  /** Secrets that have been verified against their hash, by the key as it was then: they need no hashing again. */
  readonly #verified = new WeakMap<ApiKey, Buffer>();
  #writes: Promise<void> = Promise.resolve();

  private constructor(path: string, keys: readonly ApiKey[]) {
    this.#path = path;
    this.#keys = new Map(keys.map((key) => [key.id, key]));
  }

  static async open(data: string): Promise<KeyStore> {
    const path = join(data, 'security', 'api_keys.json');
    const text = await readIfPresent(path);
    return new KeyStore(path, text === undefined ? [] : parseFile(path, text));
  }

  /** Where the owner key is left for tools on the same machine, readable by this user only. */
  static ownerKeyFile(data: string): string {
    return join(data, 'owner.key');
  }

  all(): readonly ApiKey[] {
    return [...this.#keys.values()];
  }

  get(id: string): ApiKey | undefined {
    return this.#keys.get(id);
  }

  /** The owner key that is in force, if one was made. */
  owner(): ApiKey | undefined {
    return this.all().find((key) => key.owner && !key.invalidated);
  }

  /**
   * The key that `id` and `secret` belong to, if it is valid at `now`. Takes the same time whether the id is unknown or the
   * secret is wrong.
   */
  verify(id: string, secret: string, now: number): ApiKey | undefined {
    const key = this.#keys.get(id);
    if (!this.#matches(key, secret) || key === undefined || key.invalidated) return undefined;
    return key.expiration !== undefined && key.expiration <= now ? undefined : key;
  }

  #matches(key: ApiKey | undefined, secret: string): boolean {
    const given = Buffer.from(secret);
    const known = key === undefined ? undefined : this.#verified.get(key);
    if (known?.length === given.length && timingSafeEqual(known, given)) return true;
    const expected = Buffer.from(key?.hash ?? sha256(''), 'hex');
    const matches = timingSafeEqual(expected, Buffer.from(sha256(secret), 'hex'));
    if (matches && key !== undefined) this.#verified.set(key, given);
    return matches;
  }

  async create(fields: NewKey, now: number): Promise<IssuedKey> {
    return this.#issue(randomId(), randomId(), { ...fields, owner: false }, now);
  }

  /** Makes a new owner key and leaves it in its file. */
  async createOwner(data: string, now: number): Promise<IssuedKey> {
    const issued = await this.#issue(randomId(), randomId(), ownerFields(), now);
    await replaceFile(KeyStore.ownerKeyFile(data), `${issued.encoded}\n`);
    return issued;
  }

  /** Makes `id:secret` the owner key in place of the one before. Nothing is written if it is already. */
  async setOwner(data: string, id: string, secret: string, now: number): Promise<void> {
    const current = this.owner();
    if (current?.id === id && current.hash === sha256(secret)) return;
    if (current !== undefined) this.#keys.delete(current.id);
    // The file held the key before; the person who sets the key keeps it.
    await rm(KeyStore.ownerKeyFile(data), { force: true });
    await this.#issue(id, secret, ownerFields(), now);
  }

  /** Invalidates keys; says which were valid until now. */
  async invalidate(ids: readonly string[], now: number): Promise<readonly string[]> {
    const valid = ids.filter((id) => this.#keys.get(id)?.invalidated === false);
    for (const id of valid) {
      const key = this.#keys.get(id);
      if (key !== undefined) this.#keys.set(id, { ...key, invalidated: true, invalidation: now });
    }
    if (valid.length > 0) await this.#save();
    return valid;
  }

  /** Changes keys; says of which ones something was changed. */
  async update(ids: readonly string[], change: KeyChange): Promise<readonly string[]> {
    const updated: string[] = [];
    for (const id of ids) {
      const before = this.#keys.get(id);
      if (before === undefined) continue;
      const key: ApiKey = { ...before, ...change };
      // Roles from the file and from a request differ in their prototypes, but not in their text.
      if (JSON.stringify(key) === JSON.stringify(before)) continue;
      this.#keys.set(id, key);
      updated.push(id);
    }
    if (updated.length > 0) await this.#save();
    return updated;
  }

  async #issue(id: string, secret: string, fields: NewKey & { owner: boolean }, now: number): Promise<IssuedKey> {
    const key: ApiKey = {
      id,
      username: OWNER,
      creation: now,
      invalidated: false,
      hash: sha256(secret),
      ...fields,
    };
    this.#keys.set(id, key);
    await this.#save();
    return { key, secret, encoded: Buffer.from(`${id}:${secret}`).toString('base64') };
  }

  #save(): Promise<void> {
    const write = async (): Promise<void> => {
      await replaceFile(this.#path, seal({ format: FORMAT, keys: this.all() }));
    };
    // One after the other, also after a failed one: each writes the whole current state.
    this.#writes = this.#writes.then(write, write);
    return this.#writes;
  }
}

/** Splits the `encoded` form; undefined if it is not one. */
export function decodeKey(encoded: string): { id: string; secret: string } | undefined {
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(encoded)) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 1 || colon === text.length - 1) return undefined;
  return { id: text.slice(0, colon), secret: text.slice(colon + 1) };
}

function ownerFields(): NewKey & { owner: boolean } {
  return { name: OWNER, owner: true, roles: OWNER_ROLES, roleDescriptors: {}, metadata: {} };
}

function parseFile(path: string, text: string): readonly ApiKey[] {
  const loss = 'with a new owner key and no others';
  const { keys } = parseStored(path, text, { format: FORMAT, members: ['format', 'keys'], loss });
  if (!Array.isArray(keys) || !keys.every(isKey)) {
    throw StoredFileError.damaged(path, '[keys] is not a list of keys', loss);
  }
  return keys;
}

/** Whether something has what decides about a caller. */
function isKey(key: unknown): key is ApiKey {
  if (typeof key !== 'object' || key === null) return false;
  const { id, name, hash, owner, invalidated, roles, limitedBy, expiration } = key as Partial<
    Record<keyof ApiKey, unknown>
  >;
  return (
    typeof id === 'string' &&
    typeof name === 'string' &&
    typeof hash === 'string' &&
    /^[0-9a-f]{64}$/.test(hash) &&
    typeof owner === 'boolean' &&
    typeof invalidated === 'boolean' &&
    isRoles(roles) &&
    (limitedBy === undefined || (Array.isArray(limitedBy) && limitedBy.every(isRoles))) &&
    (expiration === undefined || typeof expiration === 'number')
  );
}

/** Roles as they were read from a request once. */
function isRoles(roles: unknown): roles is Roles {
  return typeof roles === 'object' && roles !== null;
}

/** 22 characters, 128 random bits. */
function randomId(): string {
  return randomBytes(16).toString('base64url');
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
