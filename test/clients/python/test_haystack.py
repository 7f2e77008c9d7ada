"""Haystack's Elasticsearch document store and its retrievers, unchanged, with embeddings that the server makes."""

import asyncio
import os
import unittest

# No word to anybody while testing, and no wait for it.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack import Document, Pipeline, component
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import Secret
from haystack_integrations.components.retrievers.elasticsearch import (
    ElasticsearchBM25Retriever,
    ElasticsearchEmbeddingRetriever,
    ElasticsearchInferenceHybridRetriever,
    ElasticsearchInferenceSparseRetriever,
)
from haystack_integrations.document_stores.elasticsearch import ElasticsearchDocumentStore

import support

SPARSE_FIELD = "tokens"


@component
class ServerEmbedder:
    """Embeds a question by the dense model in the server."""

    @component.output_types(embedding=list[float])
    def run(self, text: str):
        with support.connect() as client:
            return {"embedding": support.embed(client, [text])[0]}


class Haystack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = support.connect()
        cls.vectors = support.embed(cls.client, list(support.PASSAGES.values()))

    @classmethod
    def tearDownClass(cls):
        support.delete_indices(cls.client, "hs-*")
        cls.client.close()

    def documents(self, vectors=True):
        return [
            Document(id=key, content=text, meta={"key": key, "number": n}, embedding=vector if vectors else None)
            for n, ((key, text), vector) in enumerate(zip(support.PASSAGES.items(), self.vectors))
        ]

    def store(self, name, **options):
        store = ElasticsearchDocumentStore(
            hosts=support.URL, index=name, api_key=Secret.from_token(support.API_KEY), **options
        )
        self.addCleanup(store.close)
        return store

    def filled(self, name, **options):
        store = self.store(name, **options)
        self.assertEqual(store.write_documents(self.documents()), len(support.PASSAGES))
        return store

    def ids(self, found):
        return [document.id for document in found["documents"]]

    def test_pipeline_with_dense_vectors(self):
        for similarity in ("cosine", "dot_product", "l2_norm"):
            store = self.filled(f"hs-{similarity}", embedding_similarity_function=similarity)
            pipeline = Pipeline()
            pipeline.add_component("embed", ServerEmbedder())
            pipeline.add_component("retrieve", ElasticsearchEmbeddingRetriever(document_store=store, top_k=2))
            pipeline.connect("embed.embedding", "retrieve.query_embedding")
            found = pipeline.run({"embed": {"text": "fear of open spaces"}})["retrieve"]
            self.assertEqual(self.ids(found)[0], "open")
            self.assertEqual(found["documents"][0].content, support.PASSAGES["open"])
            self.assertEqual(len(found["documents"][0].embedding), 384)

    def test_words_and_filters(self):
        store = self.filled("hs-words")
        retriever = ElasticsearchBM25Retriever(document_store=store, fuzziness="AUTO")
        self.assertEqual(self.ids(retriever.run(query="postage stamps"))[0], "stamps")
        self.assertEqual(self.ids(retriever.run(query="postge"))[0], "stamps")
        either = {
            "operator": "OR",
            "conditions": [
                {"field": "meta.key", "operator": "in", "value": ["bread", "whale"]},
                {
                    "operator": "AND",
                    "conditions": [
                        {"field": "meta.number", "operator": ">", "value": 3},
                        {"field": "meta.key", "operator": "!=", "value": "child"},
                    ],
                },
            ],
        }
        found = store.filter_documents(either)
        self.assertEqual({document.id for document in found}, {"bread", "whale"})
        self.assertEqual(found[0].meta.keys(), {"key", "number"})
        self.assertEqual(self.ids(retriever.run(query="the", filters=either)), ["whale"])

    def test_writing_counting_and_deleting(self):
        store = self.filled("hs-write")
        self.assertEqual(store.count_documents(), 6)
        with self.assertRaises(DuplicateDocumentError):
            store.write_documents(self.documents())
        self.assertEqual(store.write_documents(self.documents(), policy=DuplicatePolicy.SKIP), 0)
        self.assertEqual(store.write_documents(self.documents(), policy=DuplicatePolicy.OVERWRITE), 6)
        store.delete_documents(["bread", "not there"])
        self.assertEqual(store.count_documents(), 5)
        only = {"field": "meta.key", "operator": "==", "value": "whale"}
        # These send scripts.
        self.assertEqual(store.update_by_filter(only, meta={"seen": "yes"}, refresh=True), 1)
        self.assertEqual(store.filter_documents(only)[0].meta["seen"], "yes")
        values, number = store.get_metadata_field_unique_values("meta.key", search_term="WHA")
        self.assertEqual((values, number), (["whale"], 1))
        self.assertEqual(store.delete_by_filter(only, refresh=True), 1)
        self.assertEqual(store.count_documents_by_filter(only), 0)
        store.delete_all_documents(recreate_index=True)
        self.assertEqual(store.count_documents(), 0)

    def test_models_of_the_server(self):
        """Documents get their tokens from an ingest pipeline; questions are encoded by an inference endpoint."""
        pairs = [{"input_field": "content", "output_field": SPARSE_FIELD}]
        self.client.ingest.put_pipeline(
            id="hs-tokens", processors=[{"inference": {"model_id": support.SPARSE_MODEL, "input_output": pairs}}]
        )
        store = self.store("hs-sparse", sparse_vector_field=SPARSE_FIELD, ingest_pipeline="hs-tokens")
        store.write_documents(self.documents(vectors=False))
        options = {"document_store": store, "inference_id": ".elser-2-elasticsearch", "top_k": 2}
        sparse = ElasticsearchInferenceSparseRetriever(**options)
        self.assertEqual(self.ids(sparse.run(query="stamp collector"))[0], "stamps")
        hybrid = ElasticsearchInferenceHybridRetriever(**options)
        self.assertEqual(self.ids(hybrid.run(query="physician of little children"))[0], "child")
        found = asyncio.run(self.of_both(hybrid))
        self.assertEqual(self.ids(found)[0], "bread")

    async def of_both(self, retriever):
        try:
            return await retriever.run_async(query="baked dough")
        finally:
            await retriever.close_async()


if __name__ == "__main__":
    unittest.main()
