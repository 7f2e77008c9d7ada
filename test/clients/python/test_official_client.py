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

    def test_bulk_tells_what_failed(self):
        actions = [{"_index": "py-strict", "_id": str(n), "n": n if n % 2 else "no number"} for n in range(6)]
        self.client.indices.create(index="py-strict", mappings={"properties": {"n": {"type": "integer"}}})
        with self.assertRaises(helpers.BulkIndexError) as caught:
            helpers.bulk(self.client, actions)
        self.assertEqual([error["index"]["_id"] for error in caught.exception.errors], ["0", "2", "4"])
        self.assertEqual(helpers.bulk(self.client, actions, stats_only=True, raise_on_error=False, refresh=True), (3, 3))
        updates = [{"_op_type": "update", "_index": "py-strict", "_id": "1", "doc": {"n": 5}, "doc_as_upsert": True}]
        self.assertEqual(helpers.bulk(self.client, updates), (1, []))

    def test_bulk_sends_again_what_a_full_queue_refused(self):
        self.client.ml.start_trained_model_deployment(
            model_id=".elser_model_2", deployment_id="py-narrow", queue_capacity=1, wait_for="started"
        )
        pairs = [{"input_field": "text", "output_field": "v"}]
        self.client.ingest.put_pipeline(
            id="py-narrow", processors=[{"inference": {"model_id": "py-narrow", "input_output": pairs}}]
        )
        self.client.indices.create(
            index="py-narrow",
            mappings={
                "properties": {
                    "v": {"type": "sparse_vector"},
                    "s": {
                        "type": "semantic_text",
                        "inference_id": "py-narrow",
                        "chunking_settings": {"strategy": "word", "max_chunk_size": 10, "overlap": 1},
                    },
                }
            },
        )
        # More passages than the queue has places, and more documents than are encoded at once.
        actions = [
            {"_index": "py-narrow", "_id": str(n), "text": f"text {n}", "s": f"passage {n} " * 15} for n in range(12)
        ]
        # With raise_on_error the helper raises for what it could send again.
        again = {"max_retries": 60, "initial_backoff": 0.001, "max_backoff": 0.01, "raise_on_error": False}
        done, errors = helpers.bulk(self.client, actions, pipeline="py-narrow", refresh=True, **again)
        self.assertEqual((done, errors), (12, []))
        for field in ("v", "s"):
            found = self.client.count(index="py-narrow", query={"exists": {"field": field}})
            self.assertEqual(found["count"], 12, field)
        stats = self.client.ml.get_trained_models_stats(model_id=".elser_model_2")["trained_model_stats"]
        narrow = [of["deployment_stats"] for of in stats if of["deployment_stats"]["deployment_id"] == "py-narrow"][0]
        self.assertGreater(narrow["rejected_execution_count"], 0)
        self.client.ingest.delete_pipeline(id="py-narrow")
        self.client.ml.stop_trained_model_deployment(model_id="py-narrow")

    def test_inference_endpoints(self):
        settings = {"num_allocations": 1, "num_threads": 1, "model_id": ".elser_model_2"}
        self.client.inference.put(
            task_type="sparse_embedding",
            inference_id="py-elser",
            inference_config={"service": "elasticsearch", "service_settings": settings},
        )
        made = self.client.inference.inference(inference_id="py-elser", input=["a blanket"])
        self.assertGreater(len(made["sparse_embedding"][0]["embedding"]), 0)
        self.assertEqual(self.client.inference.get(inference_id="py-elser")["endpoints"][0]["service"], "elasticsearch")
        self.assertTrue(self.client.inference.delete(inference_id="py-elser")["acknowledged"])

    def test_tasks_of_a_reindex(self):
        task = self.client.reindex(
            source={"index": "py-books", "size": 50},
            dest={"index": "py-paced"},
            slices=2,
            requests_per_second=20,
            wait_for_completion=False,
        )["task"]
        children = self.client.tasks.list(parent_task_id=task, detailed=True, group_by="none")["tasks"]
        self.assertLessEqual(len(children), 2)
        self.client.reindex_rethrottle(task_id=task, requests_per_second=-1)
        done = self.client.tasks.get(task_id=task, wait_for_completion=True, timeout="30s")
        self.assertEqual((done["completed"], done["response"]["created"]), (True, 250))

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
            streamed = [ok async for ok, _ in helpers.async_streaming_bulk(client, actions(), chunk_size=20)]
            self.assertEqual(streamed, [True] * 70)
            query = {"query": {"range": {"n": {"lt": 30}}}}
            await client.indices.refresh(index="py-async")
            # This helper counts failures only.
            counts = await helpers.async_reindex(client, "py-async", "py-async-copy", query=query, chunk_size=10)
            self.assertEqual(counts, (30, 0))
            await client.indices.delete(index="py-async,py-async-copy")


if __name__ == "__main__":
    unittest.main()
