"""The WSGI application of the local AWS: every request passes here before moto sees it.

In this order: control endpoints; the `unreachable` fault; who calls; the `throttle` fault; what the caller's
role is denied; DryRun; our own handler for the call if there is one, else moto; the `delay`, `lost` and
`garbled` faults of the answer. Errors leave in AWS's words and the wire protocol of the service, and every
AWS call is recorded. Handlers are found by (service, operation) in `localenv.aws.handlers`.
"""

from __future__ import annotations

import io
import re
import socket
import time
from collections.abc import Callable, Iterable
from functools import cache
from http.client import responses
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote

from botocore.exceptions import ClientError
from botocore.model import OperationNotFoundError

from localenv.aws import control
from localenv.aws.calls import AwsError, Call, Handlers, digest
from localenv.aws.credentials import Scope, authenticate, scope_of
from localenv.aws.denials import assert_not_denied
from localenv.aws.garbling import garble
from localenv.aws.moto_internals import (
    MotoError,
    MotoServer,
    WireResponse,
    operations,
    parse_request,
    render,
    render_error,
)
from localenv.aws.state import LocalState

#: Calls that AWS takes without a signature.
UNSIGNED = {"AssumeRoleWithWebIdentity": "sts", "AssumeRoleWithSAML": "sts"}
#: Services answered here alone; what we do not serve of them, moto must not answer either.
OWN_SERVICES = frozenset({"arc-zonal-shift", "eks", "eks-auth", "pricing"})
#: Calls about the price book and the instance types, large and always the same: rendered once, whatever time
#: they ask about.
CONSTANT = frozenset(
    {
        ("ec2", "DescribeInstanceTypes"),
        ("ec2", "DescribeInstanceTypeOfferings"),
        ("ec2", "DescribeSpotPriceHistory"),
        ("pricing", "GetProducts"),
    }
)
_TIMES = frozenset({"StartTime", "EndTime"})


#: Services whose operations are told by method and path.
_ROUTED = frozenset({"arc-zonal-shift", "eks", "eks-auth", "fis"})

#: Calls that moto answers unless instances are hidden, or have what moto does not know.
AT_FIRST = frozenset({("ec2", "DescribeInstances")})


class Gateway:
    """The WSGI application."""

    def __init__(self, state: LocalState, moto: MotoServer, handlers: Handlers) -> None:
        self._state = state
        self._moto = moto
        self._handlers = handlers

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        answer = self._answer(environ, body)
        headers = [(k, v) for k, v in answer.headers if k.lower() not in {"content-length", "connection"}]
        headers.append(("Content-Length", str(len(answer.body))))
        start_response(f"{answer.status} {responses.get(answer.status, 'Unknown')}", headers)
        return [answer.body]

    def _answer(self, environ: dict[str, Any], body: bytes) -> WireResponse:
        path = environ.get("PATH_INFO", "/")
        if path.startswith(control.PREFIX):
            return control.answer(self._state, self._moto, environ["REQUEST_METHOD"], path, body)
        if self._state.faults.unreachable:
            _drop(environ)
        if path.startswith(("/moto-api", "/latest/")):
            return self._moto.dispatch(environ)
        return self._answer_aws(environ, body)

    def _answer_aws(self, environ: dict[str, Any], body: bytes) -> WireResponse:
        query = environ.get("QUERY_STRING", "")
        scope = scope_of(environ.get("HTTP_AUTHORIZATION", ""), query)
        operation, uri = self._operation(scope, environ, body)
        service = scope.service if scope else UNSIGNED.get(operation or "", "")
        # The time of a call is that of its arrival: what it takes to answer is ours, not the caller's.
        entry: dict[str, Any] = {
            "service": service,
            "action": operation,
            "principal": None,
            "time": time.time(),
        }
        try:
            if not service:
                raise AwsError("MissingAuthenticationToken", "Request is missing Authentication Token", 403)
            entry["principal"] = authenticate(scope) if scope else ""
            if self._state.take_throttle():
                raise _throttling_error(service)
            parameters = self._parameters(service, operation, environ, body, uri)
            entry["parameters"] = parameters
            rehearsed = service == "ec2" and parameters is not None and bool(parameters.get("DryRun"))
            if (fault := self._state.take_error(operation or "", rehearsed=rehearsed)) is not None:
                raise AwsError(fault.code, fault.message or f"fault: {fault.code}", fault.status)
            assert_not_denied(entry["principal"], service, operation or "")
            if rehearsed:
                message = "Request would have succeeded, but DryRun flag is set."
                raise AwsError("DryRunOperation", message, 412)
            answer = self._handle(
                service=service,
                operation=operation,
                scope=scope,
                principal=entry["principal"],
                parameters=parameters,
                environ=environ,
            )
        except (AwsError, ClientError, MotoError, NotImplementedError) as error:
            answer = self._refuse(service, operation, _as_aws_error(error), entry)
        self._state.record({**entry, "status": answer.status})
        if entry.get("error") == "DryRunOperation":
            # Delays and losses are of calls that do something.
            return answer
        if late := self._state.faults.delay.get(operation or ""):
            time.sleep(late)
        if self._state.take_loss(operation or ""):
            _drop(environ)
        return self._garble(answer, operation or "", str(entry["principal"] or ""))

    def _garble(self, answer: WireResponse, operation: str, principal: str) -> WireResponse:
        fault = self._state.faults.garbled
        if not fault.chance or fault.principal not in principal:
            return answer
        if fault.actions and operation not in fault.actions:
            return answer
        # Each call by itself, so that what other clients ask meanwhile changes nothing.
        self._state.garbled_calls[operation] += 1
        random = Random(f"{fault.seed} {operation} {self._state.garbled_calls[operation]}")
        return garble(answer, random) if random.random() < fault.chance else answer

    def _handle(
        self,
        *,
        service: str,
        operation: str | None,
        scope: Scope | None,
        principal: str,
        parameters: dict[str, Any] | None,
        environ: dict[str, Any],
    ) -> WireResponse:
        handler = self._handlers.get((service, operation or ""))
        if handler is None or not (self._state.shapes_instances or (service, operation) not in AT_FIRST):
            if service in OWN_SERVICES:
                raise NotImplementedError(f"{service} {operation or environ.get('PATH_INFO')}")
            return self._moto.dispatch(environ)
        call = Call(
            service=service,
            operation=operation or "",
            region=scope.region if scope else self._state.region,
            access_key=scope.access_key if scope else "",
            principal=principal,
            parameters=parameters or {},
            moto=self._moto,
            state=self._state,
        )
        if (service, call.operation) not in CONSTANT:
            return render(service, call.operation, handler(call))
        asked = {name: value for name, value in call.parameters.items() if name not in _TIMES}
        key = f"{call.region} {call.operation} {digest(asked, 64)}"
        if key not in self._state.rendered:
            self._state.rendered[key] = render(service, call.operation, handler(call))
        kept: WireResponse = self._state.rendered[key]
        return kept

    def _refuse(
        self, service: str, operation: str | None, error: AwsError, entry: dict[str, Any]
    ) -> WireResponse:
        entry["error"] = error.code
        known = service if _has_model(service) else "sts"
        return render_error(known, operation, error.code, error.message, error.status)

    @staticmethod
    def _operation(
        scope: Scope | None, environ: dict[str, Any], body: bytes
    ) -> tuple[str | None, dict[str, str]]:
        """The name of the operation, and the parameters in the path for the services that route by it."""
        target = environ.get("HTTP_X_AMZ_TARGET")
        if target:
            return target.rsplit(".", 1)[-1], {}
        if scope is not None and scope.service in _ROUTED:
            raw_path = str(environ.get("REQUEST_URI") or environ.get("PATH_INFO", "/")).partition("?")[0]
            return _route(scope.service, environ["REQUEST_METHOD"], raw_path)
        form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
        fields = parse_qs(body.decode("utf-8", "replace") if form else environ.get("QUERY_STRING", ""))
        return fields.get("Action", [None])[0], {}

    @staticmethod
    def _parameters(
        service: str, operation: str | None, environ: dict[str, Any], body: bytes, uri: dict[str, str]
    ) -> dict[str, Any] | None:
        """The parsed parameters, or `None` for calls whose protocol only moto needs to understand."""
        if operation is None or not _has_model(service):
            return None
        try:
            return parse_request(
                service,
                operation,
                method=environ["REQUEST_METHOD"],
                path=environ.get("PATH_INFO", "/"),
                query=environ.get("QUERY_STRING", ""),
                body=body,
                uri=uri,
            )
        except OperationNotFoundError:
            message = f"The action {operation} is not valid for this web service."
            raise AwsError("InvalidAction", message) from None


@cache
def _has_model(service: str) -> bool:
    try:
        return bool(operations(service))
    except Exception:
        return False


@cache
def _routes(service: str) -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Method, path and name of each operation of a service that routes by path; longest paths first."""
    found = []
    for operation in operations(service):
        pattern = re.sub(
            r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(operation.http["requestUri"].split("?")[0])
        )
        found.append((operation.http["method"], re.compile(pattern + "/?"), operation.name))
    return tuple(sorted(found, key=lambda route: -len(route[1].pattern)))


def _route(service: str, method: str, path: str) -> tuple[str | None, dict[str, str]]:
    for verb, pattern, name in _routes(service):
        match = pattern.fullmatch(path)
        if verb == method and match:
            return name, {key: unquote(value) for key, value in match.groupdict().items()}
    return None, {}


def _throttling_error(service: str) -> AwsError:
    if service == "ec2":
        return AwsError("RequestLimitExceeded", "Request limit exceeded.", 503)
    code = "Throttling" if service in {"iam", "sts"} else "ThrottlingException"
    return AwsError(code, "Rate exceeded", 400)


def _as_aws_error(error: Exception) -> AwsError:
    """An error in AWS's words: AWS's own, or one for what moto does not do."""
    if isinstance(error, AwsError):
        return error
    if isinstance(error, MotoError):
        return AwsError(error.code, error.message)
    if isinstance(error, ClientError):
        details = error.response["Error"]
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
        return AwsError(str(details["Code"]), str(details["Message"]), status if status < 500 else 400)
    # For a filter, EC2's own words: nearly always its name is wrong.
    text = str(error)
    named = re.search(r"[Ff]ilter.*?'([^']+)'", text)
    if named:
        return AwsError("InvalidParameterValue", f"The filter '{named[1]}' is invalid")
    return AwsError("NotImplemented", f"the local AWS does not support this: {text}", 501)


def _drop(environ: dict[str, Any]) -> None:
    """End the connection as a host does that is gone: no answer, a reset."""
    connection: socket.socket | None = environ.get("werkzeug.socket")
    if connection is not None:
        connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError("fault: the connection is dropped")
