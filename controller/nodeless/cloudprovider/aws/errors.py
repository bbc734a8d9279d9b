"""boto3's exceptions as errors of this room: one line that says what failed, where, and what to do."""

import re

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    CredentialRetrievalError,
    HTTPClientError,
    NoAuthTokenError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as AwsConnectionError,
)
from botocore.parsers import ResponseParserError

from nodeless.cloudprovider import CloudError, CloudUnavailable, CredentialsRefused
from nodeless.cloudprovider.aws.launch_failures import IMAGE_FORBIDDEN, denial, refusal
from nodeless.launch.call_details import split_call_details

_REFUSED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidIdentityToken",
        "MissingAuthenticationToken",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClient",
        "UnrecognizedClientException",
    }
)
#: What botocore raises of an answer that is not in AWS's form: its own error, or what its parsers trip over.
UNREADABLE = (ResponseParserError, AttributeError, KeyError, TypeError, ValueError)
#: Characters of such an error that are told: it may quote the whole answer.
_LONGEST_CAUSE = 300
#: Characters of AWS's own message, and of its code, that are told: events, conditions and logs show them.
_LONGEST_MESSAGE, _LONGEST_CODE = 500, 100
#: Of an error without a code botocore tells one of its own, or the HTTP status.
_NO_CODE = re.compile(r"|Unknown|\d+")
#: Codes for a lack of permission.
FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
#: Before what EC2 says in a form that only an administrator can have decoded.
_ENCODED = "encoded authorization failure message"
_ASSUME_ROLE = "AssumeRoleWithWebIdentity"
#: Codes for too many calls (botocore's list, of the services that are called here).
THROTTLED = frozenset(
    {
        "EC2ThrottledException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_TRANSIENT = THROTTLED | {"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable"}
_NO_CREDENTIALS = (
    CredentialRetrievalError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)


class AwsCallRefused(CloudError):
    """AWS understood a call and refuses it; `code` is AWS's own word for why."""

    def __init__(self, service: str, operation: str, code: str, message: str, evidence: str = "") -> None:
        super().__init__(f"{service}:{operation}: {code}: {message.rstrip('.')}", evidence=evidence)
        self.service = service
        self.operation = operation
        self.code = code


def translate(error: Exception, service: str, operation: str, url: str) -> CloudError:
    """The error of this package that says the same of a failed call, whatever botocore made of its answer."""
    if isinstance(error, ClientError):
        return _client_error(error, service, operation, url)
    if not isinstance(error, BotoCoreError):
        return CloudUnavailable(
            service,
            f"{service}:{operation} at {url}: the answer cannot be read: {type(error).__name__}: "
            f"{shorten_text(str(error), _LONGEST_CAUSE)}",
            "check what answers at this address: a proxy, or an endpoint other than AWS's",
        )
    if isinstance(error, _NO_CREDENTIALS):
        return CredentialsRefused(
            service,
            type(error).__name__,
            f"no usable AWS credentials for {service}: {shorten_text(str(error), _LONGEST_CAUSE)}",
            "set the role of the service account (annotation eks.amazonaws.com/role-arn), "
            "or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if isinstance(error, HTTPClientError | ConnectionClosedError | AwsConnectionError):
        return CloudUnavailable(
            service,
            f"cannot reach {service} at {url}: {_reason(error)}",
            "check AWS_ENDPOINT_URL and AWS_REGION, and the network route to that address",
        )
    if isinstance(error, NoRegionError):
        return CloudUnavailable(service, "no AWS region is known", "set AWS_REGION")
    cause = shorten_text(str(error), _LONGEST_CAUSE)
    return CloudUnavailable(service, f"{service}:{operation} at {url}: {cause}", "see the cause above")


def shorten_text(text: str, longest: int = _LONGEST_MESSAGE) -> str:
    """A text of AWS in one line of printable characters, cut when it is longer than so many."""
    # Twice as much is looked at: what is cut later may have been blanks.
    line = " ".join(text[: 2 * longest].split()).encode("utf-8", "replace").decode()
    line = "".join(character if character.isprintable() else "?" for character in line)
    return line if len(line) <= longest and len(text) <= 2 * longest else f"{line[:longest]}..."


def _client_error(error: ClientError, service: str, operation: str, url: str) -> CloudError:
    details = error.response.get("Error", {})
    metadata = error.response.get("ResponseMetadata", {})
    code = shorten_text(str(details.get("Code") or ""), _LONGEST_CODE)
    message, evidence = split_call_details(str(details.get("Message") or ""))
    message = shorten_text(message)
    request = str(metadata.get("RequestId", ""))
    found = (evidence, f"request {request}" if request else "")
    evidence = shorten_text(", ".join(part for part in found if part), 10 * _LONGEST_MESSAGE)
    status = int(metadata.get("HTTPStatusCode", 0))
    if _NO_CODE.fullmatch(code) and status < 500:
        return CloudUnavailable(
            service,
            f"{service}:{operation} at {url}: the answer cannot be read: HTTP {status} without a code",
            "check what answers at this address: a proxy, or an endpoint other than AWS's",
            evidence=evidence,
        )
    reason = refusal(code, message).reason
    if code in _REFUSED and reason != IMAGE_FORBIDDEN:
        if error.operation_name == _ASSUME_ROLE:
            # The call itself was never made: getting credentials for it failed.
            return CredentialsRefused(
                "sts",
                code,
                f"no AWS credentials for {service}: sts:{_ASSUME_ROLE} refused: {code}: {message}",
                "check the trust policy of the role that the controller's service account names "
                "(eks.amazonaws.com/role-arn): the cluster's OIDC provider, and this service account",
                evidence,
            )
        return CredentialsRefused(
            service,
            code,
            f"{service}:{operation} at {url} refused: {code}: {message.rstrip('.')}",
            _refused_hint(f"{service}:{operation}", code, message),
            evidence,
        )
    if code in _TRANSIENT or status >= 500:
        return CloudUnavailable(
            service,
            f"{service}:{operation} at {url} failed: {code}: {message.rstrip('.')}",
            "nodeless tries again; if this continues, check AWS's status page and the account's quotas",
            reason,
            evidence,
        )
    return AwsCallRefused(service, operation, code, message, evidence)


def _refused_hint(action: str, code: str, message: str) -> str:
    if code not in FORBIDDEN:
        return "check the role or keys that the controller runs with, and the clock of its machine"
    if denied := denial(message):
        return denied.hint
    allow = f"allow {action} in the controller's policy"
    if _ENCODED not in message.lower():
        return allow
    return f"{allow}; aws sts decode-authorization-message decodes the message"


def _reason(error: BotoCoreError) -> str:
    """The innermost cause, the one that helps: `Connection refused`, a name that does not resolve."""
    inner: object = error.kwargs.get("error") or error
    while isinstance(inner, BaseException):
        deeper = getattr(inner, "reason", None) or inner.__cause__ or (inner.args or (None,))[-1]
        if not isinstance(deeper, BaseException) or deeper is inner:
            break
        inner = deeper
    text = str(inner)
    return text.rsplit(": ", 1)[-1] if ": " in text else text or type(error).__name__
