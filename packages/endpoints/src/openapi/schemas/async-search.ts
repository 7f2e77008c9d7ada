import { bool, int, object, open, ref, text } from './schema.js';

const about = {
  id: text('where the search is kept'),
  is_partial: bool(),
  is_running: bool(),
  start_time_in_millis: int(),
  expiration_time_in_millis: int(),
  completion_time_in_millis: int(),
};
const always = ['is_partial', 'is_running', 'start_time_in_millis', 'expiration_time_in_millis'];
const answer = object({ ...about, response: ref('SearchAnswer'), error: open(), status: int() }, always);

export const ASYNC_SEARCH_OPERATIONS = {
  async_search: { about: 'Searches, without its caller waiting.', request: ref('SearchRequest'), answer },
  get_async_search: { about: 'The result of a search that nobody waited for.', answer },
  async_search_status: {
    about: 'How a search is that nobody waits for.',
    answer: object({ ...about, _shards: ref('ShardStatistics'), completion_status: int() }, [
      'id',
      ...always,
      '_shards',
    ]),
  },
  delete_async_search: {
    about: 'Deletes the result of a search that nobody waited for, and stops it if it runs.',
    answer: ref('Acknowledged'),
  },
} as const;
