"""Scripts in the manner of elasticsearch-dsl's own examples."""

import unittest
from datetime import datetime

from elasticsearch_dsl import A, Date, Document, FacetedSearch, Integer, Keyword, MultiSearch, Q, Search, TermsFacet, Text, analyzer, connections
from elasticsearch_dsl import DateHistogramFacet

import support

folding = analyzer("dsl_folding", tokenizer="standard", filter=["lowercase", "asciifolding", "stop", "snowball"])


class Post(Document):
    title = Text(analyzer=folding, fields={"raw": Keyword()})
    tags = Keyword()
    likes = Integer()
    published = Date()

    class Index:
        name = "dsl-posts"
        settings = {"number_of_shards": 1}


class Posts(FacetedSearch):
    index = "dsl-posts"
    doc_types = [Post]
    fields = ["title"]
    facets = {"tags": TermsFacet(field="tags"), "months": DateHistogramFacet(field="published", calendar_interval="month")}


class Dsl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.client = support.connect()
        connections.add_connection("default", cls.client)
        Post.init()
        for number in range(30):
            post = Post(
                meta={"id": number},
                title=f"Les élèves marchaient: post {number}",
                tags=["odd" if number % 2 else "even", "all"],
                likes=number,
                published=datetime(2024, 1 + number % 3, 5),
            )
            post.save()
        Post._index.refresh()

    @classmethod
    def tearDownClass(cls):
        support.delete_indices(cls.client, "dsl-*")
        connections.remove_connection("default")
        cls.client.close()

    def test_document_round_trip(self):
        post = Post.get(id=7)
        self.assertEqual((post.likes, list(post.tags)), (7, ["odd", "all"]))
        post.update(likes=70, refresh=True)
        self.assertEqual(Post.get(id=7).likes, 70)
        post.update(likes=7, refresh=True)

    def test_search(self):
        search = (
            Post.search()
            .query("match", title="eleves")
            .filter("term", tags="even")
            .exclude("range", likes={"gte": 20})
            .sort("-likes")
            .highlight("title", fragment_size=50)[0:4]
        )
        answer = search.execute()
        self.assertEqual([hit.likes for hit in answer], [18, 16, 14, 12])
        self.assertIn("<em>élèves</em>", answer[0].meta.highlight.title[0])
        self.assertEqual(search.count(), 10)

    def test_query_algebra_and_scan(self):
        query = (Q("match", title="post") & ~Q("term", tags="odd")) | Q("ids", values=["1"])
        self.assertEqual(Post.search().query(query).extra(track_total_hits=True).execute().hits.total.value, 16)
        self.assertEqual(len(list(Post.search().scan())), 30)

    def test_aggregations(self):
        search = Search(index="dsl-posts").extra(size=0)
        search.aggs.bucket("tags", A("terms", field="tags")).metric("likes", "avg", field="likes")
        search.aggs.bucket("months", "date_histogram", field="published", calendar_interval="month")
        answer = search.execute()
        self.assertEqual(answer.aggregations.tags.buckets[0].key, "all")
        self.assertEqual(answer.aggregations.tags.buckets[0].likes.value, 14.5)
        self.assertEqual([bucket.doc_count for bucket in answer.aggregations.months.buckets], [10, 10, 10])

    def test_faceted_search(self):
        answer = Posts("marchaient", {"tags": "odd"}).execute()
        self.assertEqual(answer.hits.total.value, 15)
        self.assertEqual(answer.facets.tags[0][:2], ("all", 30))

    def test_multi_search(self):
        both = MultiSearch(index="dsl-posts").add(Search().filter("term", tags="odd")).add(Search().query("match_none"))
        self.assertEqual([answer.hits.total.value for answer in both.execute()], [15, 0])


if __name__ == "__main__":
    unittest.main()
