// What suites of version 7 still say and version 8 does not know: a request is sent without it.

/** The arguments of a call without types of documents. A type other than `_doc` is left in, so that the test shows it. */
export function withoutTypes(name, { type, include_type_name: typed, ...args }) {
  if (typed === true || typed === 'true') args.include_type_name = typed;
  if (type !== undefined && type !== '_doc') args.type = type;
  if (name === 'bulk' || name === 'mget')
    return { ...args, ...(args.body === undefined ? {} : { body: untyped(args.body) }) };
  return args;
}

/** The body of a bulk or mget request without `"_type": "_doc"`. */
function untyped(body) {
  if (typeof body === 'string') {
    return body.replace(/,\s*"_type"\s*:\s*"_doc"/g, '').replace(/"_type"\s*:\s*"_doc"\s*,?\s*/g, '');
  }
  if (Array.isArray(body)) return body.map(untyped);
  if (body === null || typeof body !== 'object' || body.constructor !== Object) return body;
  const members = Object.entries(body).filter(([key, value]) => key !== '_type' || value !== '_doc');
  return Object.fromEntries(members.map(([key, value]) => [key, untyped(value)]));
}
