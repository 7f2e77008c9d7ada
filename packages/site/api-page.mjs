// The page about every endpoint, from the OpenAPI document.

/** Rows of a table, above which an answer is only begun: statistics have hundreds. */
const MOST_ROWS = 60;

/** Markdown of the page. */
export function apiPage(document) {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.operationId !== undefined)
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
  );
  const tags = [...new Set(operations.flatMap((operation) => operation.tags))].sort();
  const common = Object.values(document.components.parameters);
  return [
    '# Every endpoint',
    '',
    'Made from the OpenAPI document, which a server has at `/_openapi.json`. [Compatibility](compatibility.md) says what differs from',
    'Elasticsearch, [errors](errors.md) what a refusal means.',
    '',
    'Every endpoint also takes these parameters:',
    '',
    ...table(
      ['parameter', 'type', 'what'],
      common.map((it) => [`\`${it.name}\``, typeOf(it.schema), it.description]),
    ),
    ...tags.flatMap((tag) => [
      `## ${capital(tag)}`,
      '',
      ...families(
        operations.filter((it) => it.tags.includes(tag)),
        document,
      ),
    ]),
  ].join('\n');
}

/** Forms of the same operation stand together, such as `GET /_search` and `POST /{index}/_search`. */
function families(operations, document) {
  const bySummary = Map.groupBy === undefined ? grouped(operations) : Map.groupBy(operations, ({ summary }) => summary);
  return [...bySummary].flatMap(([summary, forms]) => {
    const parameters = new Map(
      forms.flatMap((form) => form.parameters.filter(({ name }) => name !== undefined).map((it) => [it.name, it])),
    );
    const [form] = forms.filter(({ requestBody }) => requestBody !== undefined).concat(forms);
    const shown = forms.filter(({ method }) => method !== 'HEAD' || forms.every((it) => it.method === 'HEAD'));
    return [
      `### ${summary}`,
      '',
      ...shown.map(({ method, path }) => `- \`${method} ${path}\`${isOpen(form) ? ' (no key needed)' : ''}`),
      '',
      ...section(
        'Parameters',
        [...parameters.values()].map(({ name, schema }) => [`\`${name}\``, typeOf(schema)]),
      ),
      ...body(form, document),
      ...answer(form, document),
    ];
  });
}

function grouped(operations) {
  const groups = new Map();
  for (const it of operations) groups.set(it.summary, [...(groups.get(it.summary) ?? []), it]);
  return groups;
}

const isOpen = ({ security }) => Array.isArray(security) && security.length === 0;

function body({ requestBody }, document) {
  if (requestBody === undefined) return [];
  const [type, { schema }] = Object.entries(requestBody.content)[0];
  const members = membersOf(schema, document);
  if (members.length > 0) return section('Request, in JSON', members);
  return [`**Request:** \`${type}\``, ''];
}

function answer({ responses }, document) {
  const content = Object.entries(responses[200]?.content ?? {});
  if (content.length === 0) return [];
  const [type, { schema }] = content.find(([name]) => name === 'application/json') ?? content[0];
  const members = membersOf(schema, document);
  if (members.length > 0) return section('Answer', members);
  return [`**Answer:** ${content.map(([name]) => `\`${name}\``).join(', ') || `\`${type}\``}`, ''];
}

/** Members of an object with their types, those of objects inside of it behind a point. */
function membersOf(schema, document, before = '') {
  const { properties, items, additionalProperties } = resolved(schema, document);
  if (items !== undefined && before !== '') return membersOf(items, document, `${before}[]`);
  if (items !== undefined) return membersOf(items, document, '[]');
  if (typeof additionalProperties === 'object') {
    const path = before === '' ? '*' : `${before}.*`;
    const described = resolved(additionalProperties, document);
    return [[`\`${path}\``, typeOf(described)], ...membersOf(described, document, path)];
  }
  return Object.entries(properties ?? {}).flatMap(([name, part]) => {
    const path = before === '' ? name : `${before}.${name}`;
    const described = resolved(part, document);
    return [[`\`${path}\``, typeOf(described)], ...membersOf(described, document, path)];
  });
}

function resolved(schema, document) {
  if (schema?.$ref === undefined) return schema ?? {};
  return schema.$ref
    .slice(2)
    .split('/')
    .reduce((at, part) => at[part], document);
}

function typeOf(schema) {
  const { type, enum: values, pattern, format, items, additionalProperties } = schema;
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (pattern !== undefined) return 'time, such as `30s`';
  const name = Array.isArray(type) ? type.join(' or ') : (type ?? 'anything');
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (additionalProperties !== undefined) return 'object by name';
  return format === undefined ? name : `${name} (${format})`;
}

function section(title, rows) {
  if (rows.length === 0) return [];
  const left = rows.length - MOST_ROWS;
  const more = left > 0 ? [`And ${left} more, in \`/_openapi.json\`.`, ''] : [];
  return [`**${title}**`, '', ...table(['name', 'type'], rows.slice(0, MOST_ROWS)), ...more];
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line), ''];
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
