// The pages in the order in which the menu has them.
export const MENU = [
  { title: 'Begin', pages: ['start.md', 'tutorial.md', 'console.md', 'faq.md'] },
  {
    title: 'Guides',
    pages: [
      'guides/hybrid-search.md',
      'guides/long-texts.md',
      'guides/filters-and-facets.md',
      'guides/models.md',
      'guides/from-elasticsearch.md',
      'guides/from-meilisearch-typesense.md',
      'guides/tuning.md',
      'guides/running-a-server.md',
      'guides/securing-a-server.md',
      'guides/growing.md',
    ],
  },
  {
    title: 'Search',
    pages: [
      'queries.md',
      'fields.md',
      'semantic-text.md',
      'dense-vectors.md',
      'hybrid-search.md',
      'explain-and-highlight.md',
      'results.md',
    ],
  },
  { title: 'Write', pages: ['reindex.md', 'ingest.md', 'inference.md'] },
  {
    title: 'Run',
    pages: [
      'command-line.md',
      'mcp.md',
      'operating.md',
      'api-keys.md',
      'security.md',
      'snapshots.md',
      'cluster.md',
      'sizing.md',
      'design/capacity.md',
      'upgrading.md',
      'platforms.md',
      'deploy/README.md',
    ],
  },
  {
    title: 'Look up',
    pages: ['api.md', 'compatibility.md', 'errors.md', 'limits.md', 'protocol.md', 'library.md', 'glossary.md'],
  },
  { title: 'Figures', pages: ['charts.md', 'performance.md', 'reliability.md', 'specification.md'] },
];
