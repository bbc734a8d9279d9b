"""What is changed in the environment code of the suites, and why. No file of a suite is ever among it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

#: Folders of environment code, and files that tell what is required of other modules. Everything else of a
#: module is as it was published.
ADAPTABLE = (PurePosixPath("test/pkg/environment"), PurePosixPath("test/pkg/debug"))
REQUIREMENTS = ("go.mod", "go.sum")


@dataclass(frozen=True, slots=True)
class Adaptation:
    """One text that is replaced wherever it stands in a file.

    Attributes:
        file: Path in the module.
        old: Text that must be there.
        new: What stands there instead.
        reason: Why, in a sentence for docs/conformance.md.
    """

    file: str
    old: str
    new: str
    reason: str


_EXPECTATIONS = "test/pkg/environment/common/expectations.go"

ADAPTATIONS: tuple[Adaptation, ...] = (
    Adaptation(
        _EXPECTATIONS,
        """	localPort := rand.IntnRange(1024, 49151)
	env.ExpectPodPortForwarded(ctx, env.ExpectActiveKarpenterPod(), 8080, localPort)

	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", localPort))
	Expect(err).ToNot(HaveOccurred())
	reader := bufio.NewReader(resp.Body)
	defer resp.Body.Close()
""",
        """	_ = rand.IntnRange
	pod := env.ExpectActiveKarpenterPod()
	body, err := env.KubeClient.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, "", "metrics", nil).Stream(ctx)
	Expect(err).ToNot(HaveOccurred())
	reader := bufio.NewReader(body)
	defer body.Close()
""",  # noqa: E501 - Go
        "kubelets here forward no ports: the pod's metrics are read through the API server instead",
    ),
)


_ENVIRONMENT = "test/pkg/environment/common/environment.go"
_NO_PORT = "a suite's own controllers serve no metrics: pods here share the machine's port 8080 with them"
_CLIENT, _METRICS = (
    f'"sigs.k8s.io/controller-runtime/pkg/{each}"\n' for each in ("client", "metrics/server")
)

CORE_ADAPTATIONS: tuple[Adaptation, ...] = (
    Adaptation(_ENVIRONMENT, f"\t{_CLIENT}", f"\t{_CLIENT}\tmetricsserver {_METRICS}", _NO_PORT),
    Adaptation(
        _ENVIRONMENT,
        "func NewEnvironment(t *testing.T) *Environment {\n",
        'func NewEnvironment(t *testing.T) *Environment {\n\tmetricsserver.DefaultBindAddress = "0"\n',
        _NO_PORT,
    ),
)


_SDK = "github.com/aws/aws-sdk-go-v2/service"


def _older(
    service: str, published: tuple[str, str, str], older: tuple[str, str, str]
) -> Iterator[Adaptation]:
    """Require an older version of a client; each version with the sums of its archive and of its go.mod."""
    reason = (
        f"the module proxy lacks {service} {published[0]}; the environment code uses no call that is newer"
    )
    yield Adaptation("go.mod", f"{_SDK}/{service} {published[0]}", f"{_SDK}/{service} {older[0]}", reason)
    old, new = (
        f"{_SDK}/{service} {version} h1:{archive}\n{_SDK}/{service} {version}/go.mod h1:{manifest}\n"
        for version, archive, manifest in (published, older)
    )
    yield Adaptation("go.sum", old, new, reason)


OLDER_REQUIREMENTS: tuple[Adaptation, ...] = (
    *_older(
        "fis",
        (
            "v1.46.1",
            "Y0lAiBT92SPZEAu0sXrRYBQdhsem6vS5yoxBwj5I4Xs=",
            "D0/y4Te86uBTkK9py6Mh+kN+bZ9vrBqvttb8uatHwxA=",
        ),
        (
            "v1.38.8",
            "+tO7uWGrC8vcupVed+wAY/C2ZKmnGGOiz5TE7Pl4YQs=",
            "GiV44Jj1j1RHGKaVTSkmU7OSwHLyT0qxXxfehYCkC3E=",
        ),
    ),
    *_older(
        "timestreamwrite",
        (
            "v1.43.1",
            "KRjhh88DPdi591EyLRYVDB6fegXQnhGKSMokMZQnJCY=",
            "Nt+9fQz3mumtjAY3c98msDZySDqNLhFi0ImFc2dwQ1c=",
        ),
        (
            "v1.36.2",
            "WOBFjXcpUqBaTwD8HePRaztmRvpBtrujlBJ5EHX/MKw=",
            "kpAdSe0IIOtpemotx9tqwPKvDZVbOos0DXckU+qKbJU=",
        ),
    ),
)


class AdaptationFailed(RuntimeError):
    """A replacement does not fit: its text is not there, or it touches more than environment code."""


def adapt_files(texts: Mapping[str, str], adaptations: Iterable[Adaptation]) -> dict[str, str]:
    """The changed files, by path.

    Args:
        texts: Files of the module as published, by path; those that are adapted must be among them.
        adaptations: What to replace.

    Raises:
        AdaptationFailed: A text is missing, or a file is no environment code.
    """
    changed: dict[str, str] = {}
    for adaptation in adaptations:
        if not is_adaptable(adaptation.file):
            raise AdaptationFailed(
                f"{adaptation.file} is not environment code: only {_adaptable()} may be adapted"
            )
        text = changed.get(adaptation.file, texts.get(adaptation.file, ""))
        if adaptation.old not in text:
            raise AdaptationFailed(
                f"{adaptation.file} does not contain {adaptation.old!r}; hint: compare with the new version"
            )
        changed[adaptation.file] = text.replace(adaptation.old, adaptation.new)
    return changed


def is_adaptable(file: str) -> bool:
    """Whether a file is environment code, or tells what is required of other modules."""
    return file in REQUIREMENTS or any(folder in PurePosixPath(file).parents for folder in ADAPTABLE)


def _adaptable() -> str:
    return ", ".join((*map(str, ADAPTABLE), *REQUIREMENTS))
