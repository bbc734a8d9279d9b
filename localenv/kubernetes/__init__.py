"""The local environment's client of the Kubernetes API, for code that waits and for code that is awaited.

Objects are plain dicts and are addressed by API path. `verbs` says what is asked, `connection` who asks and
what a refusal says; `client.KubernetesApi` waits for each answer and finds paths by `discovery`;
`aio.AsyncKubernetesApi` is awaited, and `reflector` keeps a collection in memory: both serve the simulated
kubelets, and are imported from their modules, for they load aiohttp. The controller's own way to the API
server is `nodeless.kube`: the environment that judges it does not lean on it.
"""

from localenv.kubernetes.client import ConditionNotMet, KubernetesApi, is_established
from localenv.kubernetes.connection import ApiError, ApiUnreachable, Cause, Identity
from localenv.kubernetes.discovery import UnknownKind
from localenv.kubernetes.verbs import Object, Objects

__all__ = [
    "ApiError",
    "ApiUnreachable",
    "Cause",
    "ConditionNotMet",
    "Identity",
    "KubernetesApi",
    "Object",
    "Objects",
    "UnknownKind",
    "is_established",
]
