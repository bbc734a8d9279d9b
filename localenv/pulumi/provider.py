"""A Pulumi resource provider as a gRPC server, attached to the engine instead of installed.

The engine speaks `pulumirpc.ResourceProvider` to it. This module holds what all
providers have in common: the handshake, errors as the engine wants them (a resource
that exists but is not ready is recorded, so that the next update goes on with it),
and plain Python on the inside. What is done for a type of resource is asked of the
subclass: `aws.provider`, `kubernetes.provider`, `eks.provider`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    plugin_pb2,
    provider_pb2,
    provider_pb2_grpc,
    status_pb2,
)

from localenv.pulumi import wire
from localenv.pulumi.resources import (
    Change,
    Checked,
    Difference,
    Inputs,
    Outputs,
    Proposal,
    ResourceFailed,
)

#: The engine works on as many resources at once as it likes; threads that wait cost little.
_THREADS = 48
#: How long a call in flight may take to end once the server stops; calls that wait end at once.
_GRACE_SECONDS = 5.0
_MAX_MESSAGE_BYTES = 400 * 1024 * 1024
CallT = TypeVar("CallT", bound=Callable[..., Any])
_connection: ContextVar[str] = ContextVar("connection")


def _guarded(call: CallT) -> CallT:
    """What goes wrong in a call of the engine becomes a gRPC error whose first line is the cause."""

    @wraps(call)
    def guarded(self: Provider, request: Any, context: grpc.ServicerContext) -> Any:
        _connection.set(context.peer())
        try:
            return call(self, request, context)
        except ResourceFailed as failed:
            if failed.identity:
                _attach_init_failure(context, failed)
            context.abort(grpc.StatusCode.UNKNOWN, str(failed))
        except NotImplementedError as missing:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(missing))
        except Exception as error:
            context.abort(grpc.StatusCode.UNKNOWN, _text(error))
        raise AssertionError("abort raises")

    return cast("CallT", guarded)


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One package's provider; the methods in lower case are what a subclass carries out."""

    #: Name of the package, the first part of its tokens.
    package: str
    version = "0.0.0"
    #: Whether secrets, references and outputs come marked; the engine demands it where components are made.
    accepts_marks = False

    def __init__(self) -> None:
        #: Called with the URN before a resource is made; what it raises fails that resource.
        self.before_create: Callable[[str], None] = lambda urn: None
        #: Set when the operation is over or interrupted, so that everything that waits stops.
        self.cancelled = threading.Event()

    @property
    def connection(self) -> str:
        """Which provider resource a call is for: calls do not tell, but each has a connection of its own."""
        return _connection.get()

    # What a subclass says.

    def check_configuration(self, inputs: Inputs) -> Checked:
        """Check the inputs of the provider resource itself."""
        return Checked(dict(inputs))

    def compare_configuration(self, old: Inputs, new: Inputs) -> Difference:
        """What a change of the provider's own inputs means for its resources."""
        changed = tuple(sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)))
        return Difference(changed)

    def configure(self, inputs: Inputs) -> None:
        """Take the provider's own inputs; called before any resource."""

    def check(self, token: str, inputs: Inputs, proposal: Proposal) -> Checked:
        """Check a resource's inputs; a type that is not known is a fault that names it."""
        raise NotImplementedError

    def compare(self, token: str, old: Inputs, new: Inputs) -> Difference:
        """What separates two sets of inputs."""
        raise NotImplementedError

    def foresee(self, token: str, inputs: Inputs) -> Outputs:
        """The outputs of a resource that a preview would make or change."""
        raise NotImplementedError

    def foresee_change(self, token: str, change: Change) -> Outputs:
        """The outputs of a resource that a preview would change in place."""
        return dict(change.state) | dict(change.new)

    def create(self, token: str, inputs: Inputs, timeout: float) -> tuple[str, Outputs]:
        """Make a resource; give its id and outputs. A timeout of 0 means the default."""
        raise NotImplementedError

    def read(self, token: str, identity: str, inputs: Inputs) -> Outputs | None:
        """The outputs of a resource as it stands now; None when it is gone."""
        raise NotImplementedError

    def inputs_of(self, token: str, outputs: Outputs) -> Inputs:
        """The inputs of a resource that is imported: what a program would have given to make it."""
        del token
        return outputs

    def update(self, token: str, identity: str, change: Change, timeout: float) -> Outputs:
        """Change a resource in place."""
        raise NotImplementedError

    def delete(self, token: str, identity: str, inputs: Inputs, state: Inputs, timeout: float) -> None:
        """Delete a resource and wait until it is gone."""
        raise NotImplementedError

    def invoke(self, token: str, arguments: Inputs) -> Outputs:
        """Carry out a function."""
        raise NotImplementedError(f"function {token} is not known to the local {self.package} provider")

    def construct(self, request: provider_pb2.ConstructRequest) -> provider_pb2.ConstructResponse:
        """Make a component with its children."""
        raise NotImplementedError(
            f"component {request.type} is not known to the local {self.package} provider"
        )

    # What the engine calls. Names and order are those of provider.proto.

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=self.accepts_marks,
            accept_resources=self.accepts_marks,
            accept_outputs=self.accepts_marks,
        )

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return plugin_pb2.PluginInfo(version=self.version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        schema = f'{{"name": "{self.package}", "version": "{self.version}"}}'
        return provider_pb2.GetSchemaResponse(schema=schema)

    def GetMappings(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return provider_pb2.GetMappingsResponse()

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        # Not taken for an interruption: the engine also says this to each provider resource that it
        # deletes, and several of them share this server. `AttachedProvider.stop` ends what waits.
        return empty_pb2.Empty()

    @_guarded
    def CheckConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return _check_reply(self.check_configuration(wire.plain(request.news)))

    @_guarded
    def DiffConfig(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        olds = wire.plain(request.old_inputs if request.HasField("old_inputs") else request.olds)
        return _diff_reply(self.compare_configuration(olds, wire.plain(request.news)))

    @_guarded
    def Configure(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        self.configure(wire.plain(request.args))
        return provider_pb2.ConfigureResponse(
            supportsPreview=True,
            acceptSecrets=self.accepts_marks,
            acceptResources=self.accepts_marks,
            acceptOutputs=self.accepts_marks,
        )

    @_guarded
    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        proposal = Proposal(request.name or _name(request.urn), wire.plain(request.olds), request.randomSeed)
        return _check_reply(self.check(_token(request), wire.plain(request.news), proposal))

    @_guarded
    def Diff(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        old, new = wire.plain(request.old_inputs), wire.plain(request.news)
        return _diff_reply(self.compare(_token(request), old, new))

    @_guarded
    def Create(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        token, inputs = _token(request), wire.plain(request.properties)
        if request.preview:
            return provider_pb2.CreateResponse(properties=wire.struct(self.foresee(token, inputs)))
        self.before_create(request.urn)
        identity, outputs = self.create(token, inputs, request.timeout)
        return provider_pb2.CreateResponse(id=identity, properties=wire.struct(outputs))

    @_guarded
    def Read(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        token, inputs = _token(request), wire.plain(request.inputs)
        outputs = self.read(token, request.id, inputs)
        if outputs is None:
            return provider_pb2.ReadResponse()
        inputs = inputs or dict(self.inputs_of(token, outputs))
        return provider_pb2.ReadResponse(
            id=request.id, properties=wire.struct(outputs), inputs=wire.struct(inputs)
        )

    @_guarded
    def Update(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        token, new = _token(request), wire.plain(request.news)
        change = Change(wire.plain(request.old_inputs), new, wire.plain(request.olds))
        if request.preview:
            foreseen = self.foresee_change(token, change)
            return provider_pb2.UpdateResponse(properties=wire.struct(foreseen))
        outputs = self.update(token, request.id, change, request.timeout)
        return provider_pb2.UpdateResponse(properties=wire.struct(outputs))

    @_guarded
    def Delete(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        inputs, state = wire.plain(request.old_inputs), wire.plain(request.properties)
        self.delete(_token(request), request.id, inputs, state, request.timeout)
        return empty_pb2.Empty()

    @_guarded
    def Invoke(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        reply = provider_pb2.InvokeResponse()
        getattr(reply, "return").CopyFrom(wire.struct(self.invoke(request.tok, wire.plain(request.args))))
        return reply

    @_guarded
    def Construct(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        return self.construct(request)


class AttachedProvider:
    """A provider served on a loopback port for as long as an engine runs."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        sizes = [("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)]
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix=f"pulumi-{provider.package}")
        self._server = grpc.server(self._pool, options=sizes)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self) -> None:
        """Stop what waits, let it report how far it came, and stop the server."""
        self.provider.cancelled.set()
        self._server.stop(grace=_GRACE_SECONDS).wait()
        self._pool.shutdown()


def _attach_init_failure(context: grpc.ServicerContext, failed: ResourceFailed) -> None:
    detail = provider_pb2.ErrorResourceInitFailed(
        id=failed.identity, properties=wire.struct(failed.outputs), reasons=[str(failed)]
    )
    detail.inputs.CopyFrom(wire.struct(failed.inputs))
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(failed))
    status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))


def _text(error: Exception) -> str:
    text = str(error).strip()
    return text if text else type(error).__name__


def _token(request: Any) -> str:
    return str(request.type or request.urn.split("::")[2].rsplit("$", 1)[-1])


def _name(urn: str) -> str:
    return urn.split("::", 3)[3]


def _check_reply(checked: Checked) -> Any:
    failures = [
        provider_pb2.CheckFailure(property=fault.path, reason=fault.reason) for fault in checked.faults
    ]
    return provider_pb2.CheckResponse(inputs=wire.struct(checked.inputs), failures=failures)


def _diff_reply(difference: Difference) -> Any:
    some = provider_pb2.DiffResponse.DIFF_SOME
    none = provider_pb2.DiffResponse.DIFF_NONE
    return provider_pb2.DiffResponse(
        changes=some if difference.changed else none,
        diffs=list(difference.changed),
        replaces=list(difference.replaces),
        deleteBeforeReplace=difference.delete_first,
    )
