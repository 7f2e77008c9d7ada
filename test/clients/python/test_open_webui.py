"""What Open WebUI sends, after its own sources (backend/open_webui/retrieval/vector/dbs/elasticsearch.py): an application, which has no package."""

import unittest

from elasticsearch.helpers import bulk, scan

from support import PASSAGES, connect, embed

PREFIX = "open_webui_collections"


class OpenWebUI(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = connect()
        cls.keys = list(PASSAGES)
        cls.vectors = dict(zip(cls.keys, embed(cls.client, list(PASSAGES.values()))))
        cls.index = f"{PREFIX}_d{len(cls.vectors[cls.keys[0]])}"
        cls.reset()

    @classmethod
    def tearDownClass(cls):
        cls.reset()
        cls.client.close()

    @classmethod
    def reset(cls):
        for index in cls.client.indices.get(index=f"{PREFIX}*"):
            cls.client.indices.delete(index=index)

    def of(self, collection, **more):
        return {"query": {"bool": {"filter": [{"term": {"collection": collection}}]}}, **more}

    def document(self, collection, key):
        return {
            "collection": collection,
            "vector": self.vectors[key],
            "text": PASSAGES[key],
            "metadata": {"key": key, "file_id": "f1", "start_index": 0},
        }

    def test_the_life_of_a_collection(self):
        self.assertFalse(self.client.indices.exists(index=self.index))
        dims = len(self.vectors[self.keys[0]])
        strings = {"match_mapping_type": "string", "mapping": {"type": "keyword"}}
        self.client.indices.create(
            index=self.index,
            body={
                "mappings": {
                    "dynamic_templates": [{"strings": strings}],
                    "properties": {
                        "collection": {"type": "keyword"},
                        "id": {"type": "keyword"},
                        "vector": {"type": "dense_vector", "dims": dims, "index": True, "similarity": "cosine"},
                        "text": {"type": "text"},
                        "metadata": {"type": "object"},
                    },
                }
            },
        )
        # A collection that is written, and one that is written over by updates.
        bulk(
            self.client,
            [{"_index": self.index, "_id": key, "_source": self.document("files", key)} for key in self.keys],
        )
        for _ in range(2):
            bulk(
                self.client,
                [
                    {
                        "_op_type": "update",
                        "_index": self.index,
                        "_id": f"m-{key}",
                        "doc": self.document("memories", key),
                        "doc_as_upsert": True,
                    }
                    for key in self.keys
                ],
            )
        self.client.indices.refresh(index=self.index)
        count = lambda name: self.client.count(index=f"{PREFIX}*", body=self.of(name)).body["count"]
        self.assertEqual([count("files"), count("memories"), count("none")], [len(self.keys), len(self.keys), 0])

        question = embed(self.client, ["doctor for kids"])[0]
        found = self.client.search(
            index=self.index,
            body={
                "size": 3,
                "_source": ["text", "metadata"],
                "query": {
                    "script_score": {
                        "query": {"bool": {"filter": [{"term": {"collection": "files"}}]}},
                        "script": {
                            "source": "cosineSimilarity(params.vector, 'vector') + 1.0",
                            "params": {"vector": question},
                        },
                    }
                },
            },
        )["hits"]["hits"]
        self.assertEqual([found[0]["_id"], len(found)], ["child", 3])
        self.assertEqual(found[0]["_source"]["metadata"]["key"], "child")
        self.assertTrue(all(0 <= hit["_score"] <= 2 for hit in found))

        one = self.of("files", _source=["text", "metadata"])
        one["query"]["bool"]["filter"].insert(0, {"term": {"metadata.key": "bread"}})
        hits = self.client.search(index=f"{PREFIX}*", body=one, size=10)["hits"]["hits"]
        self.assertEqual([hit["_id"] for hit in hits], ["bread"])
        everything = list(scan(self.client, index=f"{PREFIX}*", query=self.of("files", _source=["text", "metadata"])))
        self.assertEqual({hit["_source"]["text"] for hit in everything}, set(PASSAGES.values()))

        by_ids = self.of("files")
        by_ids["query"]["bool"]["filter"].append({"terms": {"_id": ["bread", "none"]}})
        self.assertEqual(self.client.delete_by_query(index=f"{PREFIX}*", body=by_ids)["deleted"], 1)
        by_value = self.of("files")
        by_value["query"]["bool"]["filter"].append({"term": {"metadata.file_id": "f1"}})
        self.client.indices.refresh(index=self.index)
        deleted = self.client.delete_by_query(index=f"{PREFIX}*", body=by_value)["deleted"]
        self.assertEqual(deleted, len(self.keys) - 1)
        self.client.delete_by_query(
            index=f"{PREFIX}*", body={"query": {"term": {"collection": "memories"}}}, refresh=True
        )
        self.assertEqual([count("files"), count("memories")], [0, 0])


if __name__ == "__main__":
    unittest.main()
