"""Keys that go by which objects they stand for."""

import gc

import numpy as np

from nodeless.model.identity import Identity, places_of_same


def test_the_same_objects_are_one_key_and_equal_ones_are_two():
    types, others = np.array([1, 2]), np.array([1, 2])
    known = {Identity(types, "a"): "first"}
    assert known[Identity(types, "a")] == "first"
    assert Identity(others, "a") not in known
    assert Identity("a", types) not in known
    assert Identity(types) not in known
    assert Identity(types) != types.tobytes()


def test_a_key_keeps_its_objects_so_that_no_other_gets_its_answer():
    known = {Identity([number]): number for number in range(100)}
    gc.collect()
    assert not any(Identity([number]) in known for number in range(100))


def test_many_objects_are_found_at_their_places():
    first, second = [1], [1]
    rows = [(second, "a"), (first, "a"), (second, "a"), (second, "b")]
    assert places_of_same(rows) == [[0, 2], [1], [3]]
    assert places_of_same([]) == []
