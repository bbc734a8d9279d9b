"""Requests against use: metrics-server, Prometheus by file and by address, and what cannot be used."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs

import pytest

from tests.advice.test_advice import a_pod, a_pool, a_type, advice, advise, found, written

PODS = [a_pod(f"web-{n}", cpu="2", memory="4Gi") for n in range(4)]
CLUSTER = [a_pool("general", [a_type("m5.large", "m5.xlarge")]), *PODS]


def pod_metrics(pod, cpu, memory, container="app"):
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": pod, "namespace": "shop"},
        "timestamp": "2026-11-20T10:00:00Z",
        "window": "15s",
        "containers": [{"name": container, "usage": {"cpu": cpu, "memory": memory}}],
    }


METRICS = [pod_metrics(f"web-{n}", f"{200 + n}m", "500Mi") for n in range(4)]


def container_requests(one):
    (container,) = one["change"][0]["spec"]["template"]["spec"]["containers"]
    return container["name"], container["resources"]["requests"]


def test_samples_of_metrics_server_lower_requests_and_say_what_they_are(tmp_path):
    files = written(tmp_path, *CLUSTER), "--usage", written(tmp_path, *METRICS, name="metrics.yaml")
    made = advice(*files)
    one = found(made, "LowerRequests")["shop/web (StatefulSet)"]
    # The pod that uses most, with 15 and 25 % of room, rounded up to 10m and 16Mi.
    assert container_requests(one) == ("app", {"cpu": "240m", "memory": "640Mi"})
    assert one["alone"]["perHour"] > 0
    assert any("one sample at 2026-11-20T10:00:00Z, no percentile" in note for note in made["notes"])


def test_the_saving_is_that_of_pods_with_these_requests(tmp_path):
    made = advice(written(tmp_path, *CLUSTER), "--usage", written(tmp_path, *METRICS, name="metrics.yaml"))
    one = found(made, "LowerRequests")["shop/web (StatefulSet)"]
    small = [a_pod(f"web-{n}", cpu="240m", memory="640Mi") for n in range(4)]
    after = advice(written(tmp_path, CLUSTER[0], *small))["now"]["perHour"]
    assert made["now"]["perHour"] - after == pytest.approx(one["alone"]["perHour"], abs=2e-6)


INIT = {"initContainers": [{"name": "init", "image": "i", "resources": {"requests": {"cpu": "1900m"}}}]}


@pytest.mark.parametrize(
    "fixed",
    [INIT, {"resources": {"requests": {"cpu": "2"}}}, {"overhead": {"cpu": "1900m"}}],
    ids=["init container", "pod as a whole", "overhead"],
)
def test_what_a_pod_requests_beside_its_containers_is_no_saving(tmp_path, fixed):
    pods = [a_pod(f"web-{n}", cpu="100m" if "overhead" in fixed else "2", **fixed) for n in range(4)]
    use = written(tmp_path, *[pod_metrics(f"web-{n}", "20m", "900Mi") for n in range(4)], name="m.yaml")
    made = advice(written(tmp_path, CLUSTER[0], *pods), "--usage", use)
    assert not found(made, "LowerRequests")


def test_metrics_among_the_manifests_are_read_as_well(tmp_path):
    assert found(advice(written(tmp_path, *CLUSTER, *METRICS)), "LowerRequests")


def test_nanos_of_metrics_server_are_read(tmp_path):
    metrics = [pod_metrics(f"web-{n}", "203000000n", "512000Ki") for n in range(4)]
    made = advice(written(tmp_path, *CLUSTER), "--usage", written(tmp_path, *metrics, name="m.yaml"))
    assert container_requests(found(made, "LowerRequests")["shop/web (StatefulSet)"])[1]["cpu"] == "240m"


def test_pods_that_use_what_they_request_get_no_advice_and_those_that_use_more_a_remark(tmp_path):
    metrics = [pod_metrics(f"web-{n}", "1900m", "6Gi") for n in range(4)]
    made = advice(written(tmp_path, *CLUSTER), "--usage", written(tmp_path, *metrics, name="m.yaml"))
    assert not found(made, "LowerRequests")
    assert any("uses more memory than it requests" in line for line in made["remarks"])


def answer(kind, *series):
    return {"status": "success", "data": {"resultType": kind, "result": list(series)}}


def labels(pod, **more):
    return {"namespace": "shop", "pod": pod, "container": "app", **more}


def test_a_matrix_of_prometheus_is_taken_at_the_percentile_of_its_samples(tmp_path):
    samples = [[1000 + 60 * n, str(0.2 if n < 95 else 1.9)] for n in range(100)]
    series = [{"metric": labels(f"web-{n}", resource="cpu"), "values": samples} for n in range(4)]
    path = tmp_path / "range.json"
    path.write_text(json.dumps(answer("matrix", *series)))
    made = advice(written(tmp_path, *CLUSTER), "--usage", path)
    assert container_requests(found(made, "LowerRequests")["shop/web (StatefulSet)"])[1] == {"cpu": "230m"}
    assert any("percentile 95 of samples of 1.6 h" in note for note in made["notes"])
    higher = advice(written(tmp_path, *CLUSTER), "--usage", path, "--percentile", "99")
    assert not found(higher, "LowerRequests")


@contextmanager
def a_prometheus(answers):
    """A server that answers the query API; yields its address and what it was asked."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = parse_qs(body)["query"][0]
            asked.append(query)
            status, document = answers(query)
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_prometheus_is_asked_for_the_percentile_of_its_window(tmp_path):
    def answers(query):
        amount = "0.2" if "cpu" in query else str(500 * 2**20)
        return 200, answer(
            "vector", *({"metric": labels(f"web-{n}"), "value": [1000, amount]} for n in range(4))
        )

    with a_prometheus(answers) as (address, asked):
        made = advice(
            written(tmp_path, *CLUSTER), "--prometheus", address, "--window", "3d", "--percentile", "90"
        )
    assert container_requests(found(made, "LowerRequests")["shop/web (StatefulSet)"])[1] == {
        "cpu": "230m",
        "memory": "640Mi",
    }
    assert len(asked) == 2
    assert all("[3d" in query for query in asked)
    assert "quantile_over_time(0.9," in asked[0]
    assert any("percentile 90 of processors over 3d" in note for note in made["notes"])


def test_metrics_among_manifests_are_not_said_to_be_ignored(tmp_path):
    made = advice(written(tmp_path, *CLUSTER, *METRICS))

    assert found(made, "LowerRequests")
    (note,) = [note for note in made["notes"] if "PodMetrics" in note]
    assert note.endswith("`nodeless advise` reads them for what pods use")


def test_a_prometheus_that_refuses_is_named_with_its_answer(tmp_path):
    with a_prometheus(lambda query: (422, {"status": "error", "error": "too many samples"})) as (address, _):
        ended = advise(written(tmp_path, *CLUSTER), "--prometheus", address)
    assert ended.exit_code == 2
    assert "answers 422" in ended.stderr
    assert "too many samples" in ended.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no metrics of pods"),
        ("{", "not YAML"),
        ('{"status": "error", "error": "timeout"}', "not an answer of Prometheus: timeout"),
        (
            json.dumps(answer("vector", {"metric": labels("web-0"), "value": [1, "2"]})),
            "whether it is cpu or memory",
        ),
        (json.dumps(answer("vector", {"metric": labels("web-0"), "value": [1, "x"]})), "is not a number"),
        (json.dumps(pod_metrics("web-0", "fast", "1Gi")), "cpu 'fast' is not a quantity"),
        ('{"kind": "PodMetrics"}', "PodMetrics without metadata or containers"),
        (
            json.dumps({"kind": "List", "items": [pod_metrics("web-0", "1", "1Gi"), PODS[0]]}),
            "holds other objects besides PodMetrics; hint: give the others as manifests",
        ),
    ],
)
def test_metrics_that_cannot_be_used_are_refused_with_their_file(tmp_path, text, said):
    path = tmp_path / "metrics.json"
    path.write_text(text)
    ended = advise(written(tmp_path, *CLUSTER), "--usage", path)
    assert ended.exit_code == 2
    assert str(path) in ended.stderr
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--prometheus", "localhost"), "is no address; hint: http://HOST:9090"),
        (("--prometheus", "http://127.0.0.1:9", "--window", "a week"), "is no duration; hint"),
        (("--prometheus", "http://127.0.0.1:9"), "cannot be asked"),
    ],
)
def test_an_address_that_cannot_be_used(tmp_path, options, said):
    ended = advise(written(tmp_path, *CLUSTER), *options)
    assert ended.exit_code == 2
    assert said in ended.stderr
