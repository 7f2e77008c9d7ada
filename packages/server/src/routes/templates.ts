import { type Endpoint, engine } from './types.js';

const PUT = ['create', 'cause', 'master_timeout'];
const GET = ['flat_settings', 'include_defaults', 'local', 'master_timeout'];
const DELETE = ['timeout', 'master_timeout'];
const COMPOSABLE = '/_index_template';
const COMPONENT = '/_component_template';
const LEGACY = '/_template';

/** What new indices get by their names. */
export const TEMPLATE_ENDPOINTS: readonly Endpoint[] = [
  ...engine('put_index_template', 'indices:admin/index_template/put', [`PUT|POST ${COMPOSABLE}/{name}`], {
    body: true,
    params: PUT,
  }),
  ...engine(
    'get_index_template',
    'indices:admin/index_template/get',
    [`GET ${COMPOSABLE}`, `GET|HEAD ${COMPOSABLE}/{name}`],
    { params: GET },
  ),
  ...engine('delete_index_template', 'indices:admin/index_template/delete', [`DELETE ${COMPOSABLE}/{name}`], {
    params: DELETE,
  }),
  ...engine(
    'simulate_index_template',
    'indices:admin/index_template/simulate_index',
    [
      `POST ${COMPOSABLE}/_simulate_index/{index}`,
      `POST ${COMPOSABLE}/_simulate`,
      `POST ${COMPOSABLE}/_simulate/{name}`,
    ],
    { body: true, params: [...PUT, 'include_defaults', 'flat_settings'] },
  ),
  ...engine('put_component_template', 'cluster:admin/component_template/put', [`PUT|POST ${COMPONENT}/{name}`], {
    body: true,
    params: [...PUT, 'timeout'],
  }),
  ...engine(
    'get_component_template',
    'cluster:admin/component_template/get',
    [`GET ${COMPONENT}`, `GET|HEAD ${COMPONENT}/{name}`],
    { params: GET },
  ),
  ...engine('delete_component_template', 'cluster:admin/component_template/delete', [`DELETE ${COMPONENT}/{name}`], {
    params: DELETE,
  }),
  ...engine('put_template', 'indices:admin/template/put', [`PUT|POST ${LEGACY}/{name}`], {
    body: true,
    params: [...PUT, 'order'],
  }),
  ...engine('get_template', 'indices:admin/template/get', [`GET ${LEGACY}`, `GET|HEAD ${LEGACY}/{name}`], {
    params: GET,
  }),
  ...engine('delete_template', 'indices:admin/template/delete', [`DELETE ${LEGACY}/{name}`], { params: DELETE }),
];
