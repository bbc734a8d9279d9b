"""What is told of a failed call is the same for the same fault, in one line of bounded length."""

from typing import Any
from uuid import UUID

from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeless.cloudprovider import CloudError, CloudUnavailable
from nodeless.cloudprovider.aws.errors import translate
from nodeless.launch.results import read_answer

URL = "https://ec2.us-east-1.amazonaws.com"
CODES = st.sampled_from(
    ["UnauthorizedOperation", "RequestLimitExceeded", "InvalidSubnetID.NotFound", "InternalError", "X" * 9000]
)
TEXTS = st.text(max_size=60) | st.sampled_from(["x" * 200_000, "<html>\n\u202e</html>", "a\x00b\r\nc" * 900])
IDS = st.uuids(version=4)


def reported(code: Any, message: Any, request: UUID, status: int = 400) -> CloudError:
    text = f"{message} (Service: Ec2, Status Code: {status}, Request ID: {request})"
    response: Any = {
        "Error": {"Code": code, "Message": text},
        "ResponseMetadata": {"RequestId": str(request), "HTTPStatusCode": status},
    }
    return translate(ClientError(response, "DescribeSubnets"), "ec2", "DescribeSubnets", URL)


@settings(deadline=None)
@given(CODES, TEXTS, IDS, IDS, st.sampled_from([400, 403, 500, 503]))
def test_the_same_fault_is_told_in_the_same_words_whatever_the_request(
    code: str, message: str, uuid: UUID, other: UUID, status: int
) -> None:
    first, second = reported(code, message, uuid, status), reported(code, message, other, status)
    assert (str(first), first.hint, first.reason) == (str(second), second.hint, second.reason)
    assert len(str(first)) < 1200
    assert str(first).isprintable()
    assert "ec2:DescribeSubnets" in str(first)


@given(st.sampled_from([None, "", "Unknown", "400", "413"]), TEXTS, IDS)
def test_an_error_without_a_code_of_awss_is_an_answer_that_cannot_be_read(
    code: str | None, message: str, request: UUID
) -> None:
    error = reported(code, message, request)
    assert isinstance(error, CloudUnavailable)
    assert "ec2:DescribeSubnets" in str(error)
    assert "cannot be read" in str(error)


@given(TEXTS)
def test_a_document_that_cannot_be_read_is_quoted_in_part(text: str) -> None:
    error = translate(ResponseParserError(text), "ec2", "DescribeSubnets", URL)
    assert len(str(error)) < 700
    assert str(error).isprintable()


@settings(deadline=None)
@given(st.data())
def test_a_fleet_that_failed_is_told_of_in_the_same_words_in_whatever_order_it_tried(
    data: st.DataObject,
) -> None:
    pair = st.fixed_dictionaries({"ErrorCode": CODES, "ErrorMessage": TEXTS})
    errors = data.draw(st.lists(pair, min_size=1, max_size=12))
    shuffled = data.draw(st.permutations(errors))
    one, other = read_answer({"Errors": errors}, "spot"), read_answer({"Errors": shuffled}, "spot")
    assert one.message == other.message
    assert len(one.message) < 5 * 600
