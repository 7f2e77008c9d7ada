import { type Endpoint, engine } from './types.js';

const COMPOSABLE = '/_index_template';
const COMPONENT = '/_component_template';
const LEGACY = '/_template';

/** What new indices get by their names. */
export const TEMPLATE_ENDPOINTS: readonly Endpoint[] = [
  ...engine('put_index_template', [`PUT|POST ${COMPOSABLE}/{name}`]),
  ...engine('get_index_template', [`GET ${COMPOSABLE}`, `GET|HEAD ${COMPOSABLE}/{name}`]),
  ...engine('delete_index_template', [`DELETE ${COMPOSABLE}/{name}`]),
  ...engine('simulate_index_template', [
    `POST ${COMPOSABLE}/_simulate_index/{index}`,
    `POST ${COMPOSABLE}/_simulate`,
    `POST ${COMPOSABLE}/_simulate/{name}`,
  ]),
  ...engine('put_component_template', [`PUT|POST ${COMPONENT}/{name}`]),
  ...engine('get_component_template', [`GET ${COMPONENT}`, `GET|HEAD ${COMPONENT}/{name}`]),
  ...engine('delete_component_template', [`DELETE ${COMPONENT}/{name}`]),
  ...engine('put_template', [`PUT|POST ${LEGACY}/{name}`]),
  ...engine('get_template', [`GET ${LEGACY}`, `GET|HEAD ${LEGACY}/{name}`]),
  ...engine('delete_template', [`DELETE ${LEGACY}/{name}`]),
];
