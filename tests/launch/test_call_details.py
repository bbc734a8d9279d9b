"""What AWS says of one call alone does not make the same fault look like another one."""

import pytest

from nodeless.launch.call_details import split_call_details
from nodeless.launch.results import read_answer

ID = "0a1b2c3d-0000-4000-8000-00000000000{}"


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ("The role with name x cannot be found", "The role with name x cannot be found"),
        ("Role x is missing (Service: Iam, Status Code: 404, Request ID: {id})", None),
        ("Role x is missing. RequestId: {id}", None),
        ("Role x is missing (request id {id})", None),
        ("You are not authorized. Encoded authorization failure message: {id}x+/=_-", None),
    ],
)
def test_two_calls_with_one_fault_read_the_same_and_what_differs_is_kept_for_the_log(message, plain):
    first, second = (split_call_details(message.format(id=ID.format(number))) for number in (1, 2))
    assert first[0] == second[0]
    assert first[0].startswith(message[:12])
    if plain is not None:
        assert first == (plain, "")
    else:
        assert ID.format(1) in first[1] and ID.format(2) in second[1]
        assert "0a1b2c3d" not in first[0]


def test_a_fleets_errors_do_so_too():
    def answer(number):
        message = f"not you. Encoded authorization failure message: {ID.format(number)}"
        return read_answer(
            {"Errors": [{"ErrorCode": "UnauthorizedOperation", "ErrorMessage": message}]}, "spot"
        )

    assert answer(1).message == answer(2).message
    assert answer(1).evidence != answer(2).evidence
