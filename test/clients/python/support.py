"""What every script shares: the clients and the model names, from the environment the test sets."""

import json
import math
import os
from pathlib import Path

from elasticsearch import Elasticsearch
from elasticsearch.helpers.vectorstore import DistanceMetric

URL = os.environ["SPARROW_URL"]
API_KEY = os.environ["SPARROW_API_KEY"]
SPARSE_MODEL = ".sparse_encoder_model_2"
DENSE_MODEL = os.environ["SPARROW_DENSE_MODEL"]

PASSAGES = json.loads(Path(os.environ["SPARROW_PASSAGES"]).read_text())


def connect() -> Elasticsearch:
    return Elasticsearch(URL, api_key=API_KEY)


def delete_indices(client: Elasticsearch, pattern: str) -> None:
    """A wildcard alone deletes nothing, as in Elasticsearch: the names are looked up."""
    for name in client.indices.get(index=pattern):
        client.indices.delete(index=name)


def embed(client: Elasticsearch, texts: list[str]) -> list[list[float]]:
    """Vectors by the dense model in the server."""
    made = client.inference.inference(inference_id=".all-minilm-l6-v2-elasticsearch", input=texts, timeout="60s")
    return [one["embedding"] for one in made["text_embedding"]]


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other))


def norm(vector: list[float]) -> float:
    return math.sqrt(dot(vector, vector))


def exact_scores(question: list[float]):
    """By distance: the score that a vector has for the question, as the client's exact strategy defines it."""
    return {
        DistanceMetric.COSINE: lambda v: dot(v, question) / norm(v) / norm(question) + 1,
        DistanceMetric.EUCLIDEAN_DISTANCE: lambda v: 1 / (1 + math.dist(v, question)),
        DistanceMetric.DOT_PRODUCT: lambda v: 1 / (1 + math.exp(-dot(v, question))),
    }
