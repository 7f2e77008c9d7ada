"""What Dify sends, after its own sources (api/core/rag/datasource/vdb/elasticsearch): an application, which has no package."""

import base64
import unittest

from elasticsearch import Elasticsearch

from support import API_KEY, PASSAGES, URL, connect, embed

INDEX = "vector_index_0c5a_node"


class Dify(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Dify only knows a name and a password: the id and the secret of a key.
        name, password = base64.b64decode(API_KEY).decode().split(":")
        cls.client = Elasticsearch(
            hosts=URL, basic_auth=(name, password), request_timeout=100_000, retry_on_timeout=True, max_retries=10_000
        )
        with connect() as client:
            client.indices.delete(index=INDEX, ignore_unavailable=True)
            cls.vectors = dict(zip(PASSAGES, embed(client, list(PASSAGES.values()))))
            cls.question = embed(client, ["doctor for kids"])[0]

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def test_the_life_of_a_collection(self):
        self.assertGreaterEqual(self.client.info()["version"]["number"], "8.0.0")
        self.assertFalse(self.client.indices.exists(index=INDEX))
        dims = len(self.question)
        self.client.indices.create(
            index=INDEX,
            mappings={
                "properties": {
                    "page_content": {"type": "text"},
                    "vector": {"type": "dense_vector", "dims": dims, "index": True, "similarity": "cosine"},
                    "metadata": {
                        "type": "object",
                        "properties": {"doc_id": {"type": "keyword"}, "document_id": {"type": "keyword"}},
                    },
                }
            },
        )
        for key, text in PASSAGES.items():
            self.client.index(
                index=INDEX,
                id=f"id-{key}",
                document={
                    "page_content": text,
                    "vector": self.vectors[key],
                    "metadata": {"doc_id": f"id-{key}", "document_id": f"d-{key}", "doc_hash": "0", "dataset_id": "s"},
                },
            )
        self.client.indices.refresh(index=INDEX)
        self.assertTrue(self.client.exists(index=INDEX, id="id-bread").__bool__())
        self.assertFalse(self.client.exists(index=INDEX, id="id-none").__bool__())

        knn = {"field": "vector", "query_vector": self.question, "k": 2}
        found = self.client.search(index=INDEX, body={"query": {"knn": knn}, "size": 2})["hits"]["hits"]
        self.assertEqual([found[0]["_id"], len(found)], ["id-child", 2])
        self.assertEqual(len(found[0]["_source"]["vector"]), dims)
        self.assertTrue(0 < found[1]["_score"] <= found[0]["_score"] <= 1)
        chosen = {"terms": {"metadata.document_id": ["d-bread", "d-whale"]}}
        some = self.client.search(index=INDEX, body={"query": {"knn": {**knn, "filter": chosen}}, "size": 2})
        self.assertEqual({hit["_id"] for hit in some["hits"]["hits"]}, {"id-bread", "id-whale"})

        words = {"match": {"page_content": PASSAGES["bread"].split()[0]}}
        hits = self.client.search(index=INDEX, query=words, size=4)["hits"]["hits"]
        self.assertIn("id-bread", [hit["_id"] for hit in hits])
        both = {"bool": {"must": words, "filter": chosen}}
        hits = self.client.search(index=INDEX, query=both, size=4)["hits"]["hits"]
        self.assertEqual(hits[0]["_id"], "id-bread")

        # A part of a knowledge base is deleted by its name, which a search finds.
        body = {"query": {"match": {"metadata.document_id": "d-bread"}}}
        ids = [hit["_id"] for hit in self.client.search(index=INDEX, body=body)["hits"]["hits"]]
        self.assertEqual(ids, ["id-bread"])
        for one in ids:
            self.client.delete(index=INDEX, id=one)
        self.assertFalse(self.client.exists(index=INDEX, id="id-bread").__bool__())
        self.client.indices.delete(index=INDEX)
        self.assertFalse(self.client.indices.exists(index=INDEX))


if __name__ == "__main__":
    unittest.main()
