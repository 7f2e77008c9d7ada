"""LlamaIndex's Elasticsearch store, its strategies unchanged, with embeddings that the server makes."""

import asyncio
import unittest

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices import VectorStoreIndex
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage import StorageContext
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.elasticsearch import (
    AsyncBM25Strategy,
    AsyncDenseVectorStrategy,
    AsyncSparseVectorStrategy,
    ElasticsearchStore,
)
from elasticsearch.helpers.vectorstore import AsyncDenseVectorScriptScoreStrategy

import support


class ServerEmbedding(BaseEmbedding):
    """Embeddings by the dense model in the server."""

    def _get_text_embeddings(self, texts):
        with support.connect() as client:
            return support.embed(client, texts)

    def _get_text_embedding(self, text):
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query):
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


class LlamaIndex(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        asyncio.set_event_loop(asyncio.new_event_loop())
        cls.client = support.connect()
        cls.embedding = ServerEmbedding()
        vectors = support.embed(cls.client, list(support.PASSAGES.values()))
        cls.vectors = dict(zip(support.PASSAGES, vectors))

    @classmethod
    def tearDownClass(cls):
        support.delete_indices(cls.client, "li-*")
        cls.client.close()

    def nodes(self):
        return [
            TextNode(
                text=text,
                id_=key,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"of-{key}")},
                metadata={"key": key, "kind": "thing" if key in ("bread", "whale", "stamps") else "other"},
                embedding=self.vectors[key],
            )
            for key, text in support.PASSAGES.items()
        ]

    def store(self, name, strategy=None, **options):
        store = ElasticsearchStore(
            index_name=name, es_url=support.URL, es_api_key=support.API_KEY, retrieval_strategy=strategy, **options
        )
        self.addCleanup(store.close)
        self.assertEqual(store.add(self.nodes()), list(support.PASSAGES))
        return store

    def ask(self, store, question, k=3, **options):
        vector = self.embedding.get_query_embedding(question)
        return store.query(VectorStoreQuery(query_embedding=vector, query_str=question, similarity_top_k=k, **options))

    def test_dense(self):
        store = self.store("li-dense")
        found = self.ask(store, "fear of open spaces")
        self.assertEqual(found.ids[0], "open")
        self.assertEqual(found.nodes[0].get_content(), support.PASSAGES["open"])
        self.assertEqual(found.nodes[0].metadata["key"], "open")
        store.delete("of-open")
        self.assertNotIn("open", self.ask(store, "fear of open spaces", k=6).ids)
        store.delete_nodes(["bread"])
        self.assertEqual([node.node_id for node in store.get_nodes(["whale", "bread"])], ["whale"])
        store.clear()
        self.assertFalse(self.client.indices.exists(index="li-dense"))

    def test_filters(self):
        store = self.store("li-filters")
        only = MetadataFilters(filters=[MetadataFilter(key="key", value="bread")])
        self.assertEqual(self.ask(store, "doctor", filters=only).ids, ["bread"])
        # The store takes equal values alone, and all of them must be.
        kind = MetadataFilter(key="kind", value="thing")
        filters = MetadataFilters(filters=[kind])
        self.assertEqual(set(self.ask(store, "doctor", k=6, filters=filters).ids), {"bread", "whale", "stamps"})
        filters = MetadataFilters(filters=[kind, MetadataFilter(key="key", value="whale")])
        self.assertEqual(self.ask(store, "doctor", k=6, filters=filters).ids, ["whale"])
        found = store.query(
            VectorStoreQuery(query_embedding=self.vectors["walk"], similarity_top_k=6),
            es_filter=[{"wildcard": {"metadata.key.keyword": "wh*"}}],
        )
        self.assertEqual(found.ids, ["whale"])

    def test_exact_search_by_script_score(self):
        """The client's exact strategy, by each distance, against the distances themselves."""
        self.store("li-exact")
        question = self.embedding.get_query_embedding("a doctor for sick children")
        for metric, measure in support.exact_scores(question).items():
            with self.subTest(metric):
                # This store writes vectors only with its approximate strategy; it searches by any.
                store = ElasticsearchStore(
                    index_name="li-exact",
                    es_url=support.URL,
                    es_api_key=support.API_KEY,
                    retrieval_strategy=AsyncDenseVectorScriptScoreStrategy(metric),
                )
                self.addCleanup(store.close)
                found = store.query(
                    VectorStoreQuery(query_embedding=question, similarity_top_k=6), custom_query=self.remember
                )
                scores = {key: measure(vector) for key, vector in self.vectors.items()}
                self.assertEqual(found.ids, sorted(scores, key=scores.get, reverse=True))
                # The store shows scores in a scale of its own: the server's are asked for by the same query.
                self.assertIn("script_score", self.sent["query"])
                for hit in self.client.search(index="li-exact", **self.sent)["hits"]["hits"]:
                    self.assertAlmostEqual(hit["_score"], scores[hit["_id"]], places=4)
                only = MetadataFilters(filters=[MetadataFilter(key="key", value="bread")])
                found = store.query(VectorStoreQuery(query_embedding=question, similarity_top_k=6, filters=only))
                self.assertEqual(found.ids, ["bread"])

    def remember(self, body, _query):
        self.sent = body
        return body

    def test_hybrid_and_words(self):
        hybrid = self.store("li-hybrid", AsyncDenseVectorStrategy(hybrid=True, text_field="content"))
        self.assertEqual(self.ask(hybrid, "doctor for sick children", mode=VectorStoreQueryMode.HYBRID).ids[0], "child")
        words = self.store("li-words", AsyncBM25Strategy())
        found = words.query(VectorStoreQuery(query_str="postage", mode=VectorStoreQueryMode.TEXT_SEARCH))
        self.assertEqual(found.ids, ["stamps"])

    def test_sparse(self):
        store = self.store("li-sparse", AsyncSparseVectorStrategy(model_id=support.SPARSE_MODEL))
        query = VectorStoreQuery(query_str="stamp collector", similarity_top_k=2, mode=VectorStoreQueryMode.SPARSE)
        self.assertEqual(store.query(query).ids[0], "stamps")

    def test_index_and_retriever(self):
        store = ElasticsearchStore(index_name="li-index", es_url=support.URL, es_api_key=support.API_KEY)
        self.addCleanup(store.close)
        nodes = [TextNode(text=text, id_=key) for key, text in support.PASSAGES.items()]
        index = VectorStoreIndex(
            nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=self.embedding
        )
        found = index.as_retriever(similarity_top_k=1).retrieve("a big animal in the sea")
        self.assertEqual(found[0].node_id, "whale")


if __name__ == "__main__":
    unittest.main()
