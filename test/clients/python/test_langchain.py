"""langchain-elasticsearch, its strategies unchanged."""

import unittest

from langchain_core.documents import Document
from langchain_elasticsearch import (
    BM25Strategy,
    DenseVectorScriptScoreStrategy,
    DenseVectorStrategy,
    ElasticsearchEmbeddings,
    ElasticsearchRetriever,
    ElasticsearchStore,
    SparseVectorStrategy,
)

import support

DOCUMENTS = [Document(page_content=text, metadata={"key": key}) for key, text in support.PASSAGES.items()]


class Langchain(unittest.TestCase):
    def setUp(self):
        self.client = support.connect()

    def tearDown(self):
        support.delete_indices(self.client, "lc-*")
        self.client.close()

    def store(self, name, strategy, **options):
        store = ElasticsearchStore(
            index_name=name, es_url=support.URL, es_api_key=support.API_KEY, strategy=strategy, **options
        )
        store.add_documents(DOCUMENTS)
        return store

    def embeddings(self):
        return ElasticsearchEmbeddings(model_id=support.DENSE_MODEL, client=self.client)

    def best(self, store, question, **options):
        return store.similarity_search(question, k=2, **options)[0].metadata["key"]

    def test_sparse(self):
        store = self.store("lc-sparse", SparseVectorStrategy(model_id=support.SPARSE_MODEL))
        self.assertEqual(self.best(store, "philatelist: stamp collector"), "stamps")
        only = [{"term": {"metadata.key.keyword": "bread"}}]
        self.assertEqual(self.best(store, "stamp collector eats baked food", filter=only), "bread")
        scored = store.similarity_search_with_score("doctor for children", k=3)
        self.assertEqual(scored[0][0].metadata["key"], "child")
        self.assertGreater(scored[0][1], 0)
        ids = store.add_texts(["a temporary text about volcanoes"])
        self.assertTrue(store.delete(ids))

    def test_dense_with_the_model_in_the_server(self):
        store = self.store("lc-dense", DenseVectorStrategy(), embedding=self.embeddings())
        self.assertEqual(self.best(store, "fear of open spaces"), "open")
        vector = self.embeddings().embed_query("a big animal in the sea")
        hits = store.similarity_search_by_vector_with_relevance_scores(vector, k=1)
        self.assertEqual(hits[0][0].metadata["key"], "whale")
        diverse = store.max_marginal_relevance_search("food", k=2, fetch_k=5)
        self.assertEqual(len(diverse), 2)

    def test_dense_hybrid_by_rank_fusion(self):
        strategy = DenseVectorStrategy(hybrid=True, rrf={"rank_constant": 20, "rank_window_size": 30})
        store = self.store("lc-hybrid", strategy, embedding=self.embeddings())
        self.assertEqual(self.best(store, "doctor for sick children"), "child")
        plain = self.store("lc-sum", DenseVectorStrategy(hybrid=True, rrf=False), embedding=self.embeddings())
        self.assertEqual(self.best(plain, "doctor for sick children"), "child")

    def test_exact_search_by_script_score(self):
        """The exact strategy by each distance: vectors are not in a graph, and every document is measured."""
        question = self.embeddings().embed_query("a doctor for sick children")
        vectors = dict(zip(support.PASSAGES, self.embeddings().embed_documents(list(support.PASSAGES.values()))))
        for metric, measure in support.exact_scores(question).items():
            with self.subTest(metric):
                name = f"lc-exact-{metric.value.lower()}"
                store = self.store(name, DenseVectorScriptScoreStrategy(distance=metric), embedding=self.embeddings())
                field = self.client.indices.get_mapping(index=name)[name]["mappings"]["properties"]["vector"]
                self.assertEqual((field["type"], field["index"]), ("dense_vector", False))
                found = store.similarity_search_with_score("a doctor for sick children", k=6)
                scores = {key: measure(vector) for key, vector in vectors.items()}
                keys = [document.metadata["key"] for document, _ in found]
                self.assertEqual(keys, sorted(scores, key=scores.get, reverse=True))
                for document, score in found:
                    self.assertAlmostEqual(score, scores[document.metadata["key"]], places=4)
                only = [{"term": {"metadata.key.keyword": "bread"}}]
                self.assertEqual(self.best(store, "doctor", filter=only), "bread")

    def test_bm25(self):
        store = self.store("lc-bm25", BM25Strategy())
        self.assertEqual(self.best(store, "postage stamps"), "stamps")

    def test_retriever_with_an_own_body(self):
        self.store("lc-retriever", SparseVectorStrategy(model_id=support.SPARSE_MODEL))
        retriever = ElasticsearchRetriever(
            index_name="lc-retriever",
            body_func=lambda question: {
                "sub_searches": [
                    {"query": {"match": {"text": question}}},
                    {"query": {"text_expansion": {"vector.tokens": {
                        "model_id": support.SPARSE_MODEL, "model_text": question}}}},
                ],
                "rank": {"rrf": {}},
            },
            content_field="text",
            es_url=support.URL,
            es_api_key=support.API_KEY,
        )
        found = retriever.invoke("walk slowly")
        self.assertEqual(found[0].metadata["_source"]["metadata"]["key"], "walk")


if __name__ == "__main__":
    unittest.main()
