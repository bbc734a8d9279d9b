"""User data of Windows: PowerShell that runs the node class's own text and then EKS's bootstrap script.

EC2Launch runs what stands between `<powershell>` and `</powershell>`; those tags may stand around the
node class's text or not.
"""

import re

from nodeless.launch.kubelet_arguments import Bootstrap, extra_arguments

_OPEN, _CLOSE = "<powershell>", "</powershell>"
#: As Karpenter spells it: the script's path in a variable, then its call.
_VARIABLE = "$EKSBootstrapScriptFile"
_SCRIPT = f'[string]{_VARIABLE} = "$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1"'
#: Inside the one line that is ours, tags of EC2Launch count wherever they stand.
_ANY_TAG = re.compile(r"</?\s*(powershell|script|persist|runAsLocalSystem|version|detach)", re.IGNORECASE)
#: PowerShell takes the curly quotes of word processors for straight ones.
_QUOTES = re.compile(
    "['\N{LEFT SINGLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}"
    "\N{SINGLE LOW-9 QUOTATION MARK}\N{SINGLE HIGH-REVERSED-9 QUOTATION MARK}]"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_TAG = re.compile(r"^[^\S\n]*</?(powershell|script|persist|runasLocalSystem)>", re.IGNORECASE | re.MULTILINE)


class PowerShellError(ValueError):
    """A node class's user data that cannot stand inside one PowerShell script."""


def user_data(bootstrap: Bootstrap) -> str:
    """The whole document.

    Raises:
        PowerShellError: The custom text has tags of EC2Launch inside, or a setting has one or a line break.
        nodeless.launch.kubelet_arguments.ArgumentError: Something cannot be told to the kubelet.
    """
    lines = [_OPEN]
    custom = _own_text(bootstrap.custom)
    if custom:
        lines.append(custom)
    lines += [_SCRIPT, _bootstrap_call(bootstrap), _CLOSE]
    return "\n".join(lines) + "\n"


def _own_text(custom: str) -> str:
    text = custom.replace("\r", "").strip()
    if text.startswith(_OPEN) and text.endswith(_CLOSE):
        text = text[len(_OPEN) : -len(_CLOSE)].strip("\n")
    found = _TAG.search(text)
    if found is not None:
        raise PowerShellError(
            f"user data has {found.group().strip()} inside; hint: write one PowerShell script without tags"
        )
    return text


def _bootstrap_call(bootstrap: Bootstrap) -> str:
    cluster = bootstrap.cluster
    arguments = {
        "EKSClusterName": cluster.name,
        "APIServerEndpoint": cluster.endpoint,
        "Base64ClusterCA": cluster.certificate_authority,
        "KubeletExtraArgs": extra_arguments(bootstrap),
        "DNSClusterIP": bootstrap.cluster_dns,
    }
    words = [f"-{name} {quote_string(value)}" for name, value in arguments.items() if value]
    return " ".join((f"& {_VARIABLE}", *words))


def quote_string(text: str) -> str:
    """A PowerShell string in which nothing is expanded. Raises PowerShellError."""
    if found := _CONTROL.search(text) or _ANY_TAG.search(text):
        raise PowerShellError(
            f"user data cannot hold {found.group()!r} of {text[:80]!r}; hint: write the setting without it"
        )
    return "'" + _QUOTES.sub(r"\g<0>\g<0>", text) + "'"
