// The page about every endpoint, from the OpenAPI document.

/** Rows of a table, above which an answer is only begun: statistics have hundreds. */
const MOST_ROWS = 60;
/** Parameters of every endpoint: they stand at the top. */
const COMMON = new Set(['filter_path', 'format', 'human', 'pretty', 'error_trace']);

/** Markdown of the page. */
export function apiPage(document) {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.operationId !== undefined)
      .map(([method, operation]) => ({ method: method.toUpperCase(), path, ...operation })),
  );
  // A reader who comes here first wants to search.
  const tags = [...new Set(['search', ...operations.flatMap((operation) => operation.tags).sort()])];
  const common = [...COMMON].map((name) => document.components.parameters[name]);
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
        // What a group has its name from comes first.
        operations
          .filter((it) => it.tags.includes(tag))
          .sort((a, b) => Number(b.summary === capital(tag)) - Number(a.summary === capital(tag))),
        document,
      ),
    ]),
    ...schemas(document),
  ].join('\n');
}

/** Objects that requests and answers are made of, each with its members. */
function schemas(document) {
  return [
    '## Types',
    '',
    'What requests and answers are made of. A member in bold is always there.',
    '',
    ...Object.entries(document.components.schemas).flatMap(([name, schema]) => [
      `### ${name}`,
      '',
      ...(schema.description === undefined ? [] : [schema.description, '']),
      ...shapeOf(schema, document),
    ]),
  ];
}

/** Members of an object; forms of what has several. */
function shapeOf(schema, document) {
  if (schema.anyOf !== undefined && schema.anyOf.every(({ properties }) => properties !== undefined)) {
    return schema.anyOf.flatMap((form) => [
      `**${typeOf(form.properties.type ?? {})}** ${form.description ?? ''}`,
      '',
      ...members(form, document),
    ]);
  }
  if (schema.properties === undefined) return [`${typeOf(schema)}`, ''];
  const others = schema.additionalProperties;
  const more = typeof others === 'object' ? [`Any other name: ${typeOf(others)}`, ''] : [];
  return [...members(schema, document), ...more];
}

function members({ properties = {}, required = [] }) {
  const rows = Object.entries(properties).map(([name, part]) => [
    required.includes(name) ? `**\`${name}\`**` : `\`${name}\``,
    typeOf(part),
    [part.description, presetOf(part)].filter(Boolean).join('; '),
  ]);
  return rows.length === 0 ? ['No members.', ''] : table(['member', 'type', 'what'], rows);
}

const presetOf = ({ default: preset }) => (preset === undefined ? '' : `default \`${JSON.stringify(preset)}\``);

/** Forms of the same operation stand together, such as `GET /_search` and `POST /{index}/_search`. */
function families(operations, document) {
  const bySummary = Map.groupBy === undefined ? grouped(operations) : Map.groupBy(operations, ({ summary }) => summary);
  return [...bySummary].flatMap(([summary, forms]) => {
    const parameters = new Map(
      forms
        .flatMap((form) => form.parameters.map((it) => resolved(it, document)))
        .filter(
          ({ name, description }) =>
            description !== document.components.parameters[name]?.description || !COMMON.has(name),
        )
        .map((it) => [it.name, it]),
    );
    const [form] = forms.filter(({ requestBody }) => requestBody !== undefined).concat(forms);
    const shown = forms.filter(({ method }) => method !== 'HEAD' || forms.every((it) => it.method === 'HEAD'));
    return [
      `### ${summary}`,
      '',
      form.description,
      '',
      ...shown.map(({ method, path }) => `- \`${method} ${path}\`${isOpen(form) ? ' (no key needed)' : ''}`),
      '',
      ...section(
        'Parameters',
        [...parameters.values()].map(({ name, schema, description }) => [
          `\`${name}\``,
          typeOf(schema),
          [description, presetOf(schema)].filter(Boolean).join(' '),
        ]),
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
  if (schema.contentSchema !== undefined) {
    return [`**Request:** \`${type}\`, each line of: ${typeOf(schema.contentSchema)}`, ''];
  }
  return described('Request', schema, document);
}

function answer({ responses }, document) {
  const content = Object.entries(responses[200]?.content ?? {});
  if (content.length === 0) return [];
  const json = content.find(([name]) => name === 'application/json');
  if (json !== undefined && Object.keys(json[1].schema).length > 0)
    return described('Answer', json[1].schema, document);
  return [`**Answer:** ${content.map(([name]) => `\`${name}\``).join(', ')}`, ''];
}

/** A type of the list below is named; what is only here is spelled out. */
function described(title, schema, document) {
  if (schema.properties === undefined) {
    const members = membersOf(schema, document);
    const isShort = schema.$ref !== undefined || members.length === 0 || JSON.stringify(schema).includes('$ref');
    return isShort ? [`**${title}:** ${typeOf(schema)}`, ''] : section(title, members);
  }
  return section(title, membersOf(schema, document));
}

/** Members of an object with their types, those of objects inside of it behind a point; types of the list are only named. */
function membersOf(schema, document, before = '') {
  const { properties, items, additionalProperties } = schema;
  if (items !== undefined) return membersOf(items, document, before === '' ? '[]' : `${before}[]`);
  if (typeof additionalProperties === 'object') {
    const path = before === '' ? '*' : `${before}.*`;
    return [[`\`${path}\``, typeOf(additionalProperties), ''], ...membersOf(additionalProperties, document, path)];
  }
  return Object.entries(properties ?? {}).flatMap(([name, part]) => {
    const path = before === '' ? name : `${before}.${name}`;
    const what = [part.description, presetOf(part)].filter(Boolean).join('; ');
    return [[`\`${path}\``, typeOf(part), what], ...membersOf(part, document, path)];
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
  const { $ref, anyOf, type, enum: values, pattern, format, items, additionalProperties } = schema;
  if ($ref !== undefined) {
    const name = $ref.split('/').at(-1);
    return `[${name}](#${name.toLowerCase()})`;
  }
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(' or ');
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (pattern !== undefined) return 'time, such as `30s`';
  const name = Array.isArray(type) ? type.join(' or ') : (type ?? 'anything');
  if (items !== undefined) return `list of ${typeOf(items)}`;
  if (typeof additionalProperties === 'object') return `by name: ${typeOf(additionalProperties)}`;
  return format === undefined ? name : `${name} (${format})`;
}

function section(title, rows) {
  if (rows.length === 0) return [];
  const left = rows.length - MOST_ROWS;
  const more = left > 0 ? [`And ${left} more, in \`/_openapi.json\`.`, ''] : [];
  return [`**${title}**`, '', ...table(['name', 'type', 'what'], rows.slice(0, MOST_ROWS)), ...more];
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line), ''];
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
