"""The official Python client and its helpers, as their documentation uses them."""

import unittest

from elasticsearch import AsyncElasticsearch, BadRequestError, NotFoundError, helpers

import support


class OfficialClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = support.connect()
        cls.client.indices.create(
            index="py-books",
            mappings={
                "properties": {
                    "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                    "genre": {"type": "keyword"},
                    "pages": {"type": "integer"},
                    "published": {"type": "date"},
                }
            },
        )
        actions = (
            {
                "_index": "py-books",
                "_id": str(number),
                "title": f"Book number {number} on {'whales' if number % 3 else 'bread'}",
                "genre": ["novel", "essay", "poem"][number % 3],
                "pages": 10 + number,
                "published": f"20{number % 20:02d}-01-15",
            }
            for number in range(250)
        )
        done, failed = helpers.bulk(cls.client, actions, chunk_size=60, refresh=True)
        assert (done, failed) == (250, []), (done, failed)

    @classmethod
    def tearDownClass(cls):
        support.delete_indices(cls.client, "py-*")
        cls.client.close()

    def test_info_and_ping(self):
        self.assertTrue(self.client.ping())
        self.assertTrue(self.client.info()["version"]["number"].startswith("8."))

    def test_streaming_and_parallel_bulk(self):
        actions = [{"_index": "py-other", "_id": str(n), "n": n} for n in range(120)]
        self.assertTrue(all(ok for ok, _ in helpers.streaming_bulk(self.client, actions, chunk_size=50)))
        self.assertTrue(all(ok for ok, _ in helpers.parallel_bulk(self.client, actions, thread_count=2, chunk_size=30)))
        self.client.indices.refresh(index="py-other")
        self.assertEqual(self.client.count(index="py-other")["count"], 120)
        deletes = [{"_op_type": "delete", "_index": "py-other", "_id": str(n)} for n in range(100, 130)]
        done, errors = helpers.bulk(self.client, deletes, raise_on_error=False, refresh=True)
        self.assertEqual((done, len(errors)), (20, 10))

    def test_scan_sees_every_document_once(self):
        seen = [hit["_id"] for hit in helpers.scan(self.client, index="py-books", size=40, query={"query": {"match_all": {}}})]
        self.assertEqual(sorted(seen, key=int), [str(n) for n in range(250)])

    def test_reindex_helper(self):
        done, failed = helpers.reindex(self.client, "py-books", "py-copy", query={"query": {"term": {"genre": "novel"}}})
        self.assertEqual(failed if isinstance(failed, int) else len(failed), 0)
        self.client.indices.refresh(index="py-copy")
        self.assertEqual(done, self.client.count(index="py-copy")["count"])

    def test_search_with_everything(self):
        answer = self.client.search(
            index="py-books",
            query={"bool": {"must": {"match": {"title": "whales"}}, "filter": {"range": {"pages": {"gte": 50, "lt": 200}}}}},
            sort=[{"pages": "desc"}, "_score"],
            aggs={"genres": {"terms": {"field": "genre"}, "aggs": {"longest": {"max": {"field": "pages"}}}}},
            highlight={"fields": {"title": {}}},
            source=["title", "pages"],
            size=3,
        )
        pages = [hit["_source"]["pages"] for hit in answer["hits"]["hits"]]
        self.assertEqual(pages, sorted(pages, reverse=True))
        self.assertIn("<em>whales</em>", answer["hits"]["hits"][0]["highlight"]["title"][0])
        self.assertEqual({b["key"] for b in answer["aggregations"]["genres"]["buckets"]}, {"essay", "poem"})
        after = self.client.search(
            index="py-books", query={"match_all": {}}, sort=[{"pages": "asc"}], search_after=[100], size=2
        )
        self.assertEqual([hit["_source"]["pages"] for hit in after["hits"]["hits"]], [101, 102])

    def test_point_in_time(self):
        pit = self.client.open_point_in_time(index="py-books", keep_alive="1m")["id"]
        seen, after = set(), None
        while True:
            extra = {"search_after": after} if after else {}
            page = self.client.search(pit={"id": pit, "keep_alive": "1m"}, sort=[{"pages": "asc"}], size=90, **extra)
            hits = page["hits"]["hits"]
            if not hits:
                break
            pit, after = page["pit_id"], hits[-1]["sort"]
            seen.update(hit["_id"] for hit in hits)
        self.assertEqual(len(seen), 250)
        self.assertTrue(self.client.close_point_in_time(id=pit)["succeeded"])

    def test_msearch(self):
        answer = self.client.msearch(
            searches=[
                {"index": "py-books"},
                {"query": {"term": {"genre": "poem"}}, "size": 1},
                {"index": "py-none"},
                {"query": {"match_all": {}}},
            ]
        )
        self.assertEqual(answer["responses"][0]["status"], 200)
        self.assertEqual(answer["responses"][1]["status"], 404)

    def test_small_interfaces(self):
        self.assertEqual(self.client.field_caps(index="py-books", fields="genre")["fields"]["genre"]["keyword"]["aggregatable"], True)
        self.assertTrue(self.client.indices.validate_query(index="py-books", query={"match_all": {}})["valid"])
        self.assertTrue(self.client.explain(index="py-books", id="1", query={"match": {"title": "whales"}})["matched"])
        tokens = self.client.indices.analyze(analyzer="english", text="The running dogs")["tokens"]
        self.assertEqual([token["token"] for token in tokens], ["run", "dog"])

    def test_errors_are_the_client_s_own(self):
        with self.assertRaises(NotFoundError):
            self.client.search(index="py-missing")
        with self.assertRaises(BadRequestError) as caught:
            self.client.search(index="py-books", query={"no_such_query": {}})
        self.assertIn("unknown query [no_such_query]", str(caught.exception))


class AsyncHelpers(unittest.IsolatedAsyncioTestCase):
    async def test_async_bulk_and_scan(self):
        async with AsyncElasticsearch(support.URL, api_key=support.API_KEY) as client:
            async def actions():
                for number in range(70):
                    yield {"_index": "py-async", "_id": str(number), "n": number}

            self.assertEqual((await helpers.async_bulk(client, actions(), refresh=True))[0], 70)
            seen = [hit["_id"] async for hit in helpers.async_scan(client, index="py-async", size=20)]
            self.assertEqual(len(set(seen)), 70)
            await client.indices.delete(index="py-async")


if __name__ == "__main__":
    unittest.main()
