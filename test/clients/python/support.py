"""What every script shares: the clients and the model names, from the environment the test sets."""

import math
import os

from elasticsearch import Elasticsearch

URL = os.environ["SPARROW_URL"]
API_KEY = os.environ["SPARROW_API_KEY"]
SPARSE_MODEL = ".sparse_encoder_model_2"
DENSE_MODEL = os.environ["SPARROW_DENSE_MODEL"]

PASSAGES = {
    "stamps": "a person who collects and studies postage stamps",
    "open": "an abnormal fear of being in open or public places",
    "walk": "to walk in a leisurely way, without hurry",
    "bread": "food made from dough of flour or meal that is baked",
    "whale": "the largest mammal that ever lived, at home in the ocean",
    "child": "a physician who specialises in the treatment of children",
}


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
