import { type KeyObject, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A certificate with its key, both as PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

/**
 * Makes a certificate for `name`, for `localhost` and 127.0.0.1, signed by `issuer` or by itself. Node's crypto reads
 * certificates and makes none, so the few structures of X.509 that it takes are written here.
 */
export function issue(
  name: string,
  { issuer, ca = false, days = 30 }: { issuer?: Issued; ca?: boolean; days?: number } = {},
): Issued {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
  const extensions = [
    extension('2.5.29.19', sequence(...(ca ? [tlv(0x01, Buffer.from([0xff]))] : []))),
    // dns:localhost, ip:127.0.0.1
    extension('2.5.29.17', sequence(tlv(0x82, Buffer.from('localhost')), tlv(0x87, Buffer.from([127, 0, 0, 1])))),
  ];
  const now = Date.now();
  const body = sequence(
    tlv(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ecdsaWithSha256,
    distinguished(issuer?.name ?? name),
    sequence(time(now - 3_600_000), time(now + days * 86_400_000)),
    distinguished(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    tlv(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, issuer?.privateKey ?? privateKey);
  const der = sequence(body, ecdsaWithSha256, tlv(0x03, Buffer.concat([Buffer.from([0]), signature])));
  // A blank line, after a last line that is full, would be the end for OpenSSL.
  const lines = (der.toString('base64').match(/.{1,64}/g) ?? []).join('\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    name,
    privateKey,
  };
}

function tlv(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...parts: Buffer[]): Buffer {
  return tlv(0x30, Buffer.concat(parts));
}

function integer(bytes: Buffer): Buffer {
  return tlv(0x02, bytes);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap((part) => {
    const groups = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return tlv(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

/** A name of one part, the common name. */
function distinguished(name: string): Buffer {
  return sequence(tlv(0x31, sequence(oid('2.5.4.3'), tlv(0x0c, Buffer.from(name)))));
}

function time(millis: number): Buffer {
  const text = new Date(millis).toISOString().replaceAll(/[-:T]/g, '').slice(2, 14);
  return tlv(0x17, Buffer.from(`${text}Z`));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tlv(0x01, Buffer.from([0xff])), tlv(0x04, value));
}
