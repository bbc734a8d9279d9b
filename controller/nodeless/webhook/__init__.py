"""The webhook server: the API server asks it about every pool and node template before it stores one.

- `review`: one question, one answer (pure; the rules are those of `nodeless.api`)
- `config_maps`: what is asked about the controller's own settings
- `server`: TLS, HTTP, and nothing that could make the server fall over a bad request
- `pki`, `certificates`: its certificate, kept in a Secret that all replicas share, renewed in time
- `injection`: tells the API server whom to trust
"""

from nodeless.webhook.certificates import Certificates
from nodeless.webhook.server import AdmissionServer, WebhookPortTakenError

__all__ = ["AdmissionServer", "Certificates", "WebhookPortTakenError"]
