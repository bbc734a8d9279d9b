"""What an error message of AWS says of one call alone, told apart from what it says of the fault. Pure.

Statuses, events and logs are compared by their text: with an id of a request in it the same fault would be a
new one at each try.
"""

import re

#: IAM and EC2 encode the context of a refusal anew for each call (sts:DecodeAuthorizationMessage reads it).
_ENCODED = re.compile(r"(?i)(encoded authorization failure message:)\s*([\w+/=-]+)")
#: As the SDKs and services spell it: `(Service: Iam, Status Code: 404, Request ID: ...)`, `RequestId: ...`.
_REQUEST = re.compile(
    r"(?i)(?<![\s,;(])[\s,;(]*+\brequest[ _-]?id\s*[:=]?\s*([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)?"
)
#: Characters of a message that are read: what comes after them is nothing that anybody is told.
_LONGEST_READ = 10_000
_IN_LOG = r"\1 (in the controller's log)"


def split_call_details(message: str) -> tuple[str, str]:
    """The message without what differs from call to call; and that, for the log, or an empty text."""
    message = message[:_LONGEST_READ]
    details = [
        *(f"encoded message {found[1]}" for found in _ENCODED.findall(message)),
        *(f"request {found}" for found in _REQUEST.findall(message)),
    ]
    return _REQUEST.sub("", _ENCODED.sub(_IN_LOG, message)), ", ".join(details)
