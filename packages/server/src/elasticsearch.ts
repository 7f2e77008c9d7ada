export * from '@sparrow-search/http/elasticsearch';
