"""What a controller keeps in a ConfigMap is what it wrote last, and nothing else."""

import asyncio

import pytest

from nodeless.kube.config_maps import KeptData
from nodeless.kube.errors import ApiError


class Client:
    """An API server with one ConfigMap, which takes merge patches."""

    def __init__(self, data=None):
        self.data = data

    async def get(self, _path):
        self._find()
        return {"data": self.data}

    async def patch(self, _path, body):
        self._find()
        merged = {**self.data, **body["data"]}
        self.data = {key: value for key, value in merged.items() if value is not None}

    async def create(self, _path, body):
        self.data = dict(body["data"])

    def _find(self):
        if self.data is None:
            raise ApiError(404, "NotFound", "there is none")


def kept(client, *writes, first=None):
    async def scenario():
        data = KeptData(client, "karpenter", "kept")
        if first is not None:
            await first(data)
        for each in writes:
            await data.write(each)

    asyncio.run(scenario())
    return client.data


@pytest.mark.parametrize("first", [None, KeptData.read], ids=["unread", "read"])
@pytest.mark.parametrize("before", [None, {}, {"a": "0", "old": "1"}])
def test_what_is_not_written_any_more_goes(before, first):
    assert kept(Client(before), {"a": "1", "b": "1"}, {"b": "2"}, first=first) == {"b": "2"}
    assert kept(Client(before), {"a": "1"}, {}, {"c": "3"}, first=first) == {"c": "3"}


def test_a_map_that_somebody_removed_is_made_anew():
    client = Client({"a": "0"})

    async def removed(data):
        await data.write({"a": "1", "b": "1"})
        client.data = None

    assert kept(client, {"b": "2"}, first=removed) == {"b": "2"}
