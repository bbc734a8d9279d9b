"""Logs: their form, who is heard, what is never shown, and the ConfigMap that changes all that."""

import asyncio
import json
import logging

import pytest

from nodeless.api.logging_config import LEVELS, LoggingConfig, read_logging
from nodeless.kube import ConfigMapGone, ConfigMapSeen
from nodeless.manager.live_logging import LiveLogging
from nodeless.operator import logs
from nodeless.operator.logs import logger
from tests.controllers.process import leads, lines, scrape

NESTED = "[" * 900 + "]" * 900
SECRET = "wJalrXUtnFEMI/K7MDENG"


class Written:
    """Configures logging, and gives what was written to standard output since the last pass."""

    def __init__(self, capsys):
        self._capsys = capsys
        self.start()

    def start(self, level="", **options):
        logs.configure(level, **{"terminal": False, **options})

    def lines(self):
        return self._capsys.readouterr().out.splitlines()

    def json(self):
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def log(capsys, monkeypatch):
    """Configure logging as a process in a pod would, and read what was written since the last pass."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)

    yield Written(capsys)
    logs.reconfigure(LoggingConfig())
    logging.basicConfig(force=True)
    logging.captureWarnings(capture=False)


def zap(**members):
    return {"zap-logger-config": json.dumps(members)}


def use(data):
    config, faults = read_logging(data)
    assert not faults
    logs.reconfigure(config)


def test_a_line_is_json_with_karpenters_keys(log):
    logger("provisioner").info("found pods", count=3)
    (line,) = log.json()
    assert list(line) == ["level", "time", "logger", "message", "count"]
    assert (line["level"], line["logger"], line["message"], line["count"]) == (
        "INFO",
        "provisioner",
        "found pods",
        3,
    )


def test_the_console_form_is_zaps(log):
    use(zap(encoding="console"))
    logger("provisioner").warning("found pods", count=3)
    (line,) = log.lines()
    time, *rest = line.split("\t")
    assert time.endswith("Z")
    assert rest == ["WARN", "provisioner", "found pods", '{"count": 3}']


def test_keys_and_encoders_are_chosen_as_in_zap(log):
    encoder = {"timeKey": "ts", "timeEncoder": "epoch", "levelEncoder": "lowercase", "messageKey": "msg"}
    use(zap(encoding="json", encoderConfig={**encoder, "nameKey": ""}))
    logger("provisioner").info("x")
    (line,) = log.json()
    assert isinstance(line.pop("ts"), float)
    assert line == {"level": "info", "msg": "x"}


@pytest.mark.parametrize("word", LEVELS)
def test_lines_below_the_level_are_not_written(log, word):
    use(zap(level=word))
    part = logger("provisioner")
    for method in ("debug", "info", "warning", "error"):
        getattr(part, method)(method)
    numbers = {"debug": 10, "info": 20, "warning": 30, "error": 40}
    assert [line["message"] for line in log.json()] == [m for m, n in numbers.items() if n >= LEVELS[word]]


def test_a_component_has_a_level_of_its_own_which_goes_before_zaps(log):
    use({**zap(level="error"), "loglevel.controller": "debug"})
    for name in ("provisioner", "webhook"):
        logger(name).info("hello")
    assert [line["logger"] for line in log.json()] == ["provisioner"]


def test_what_the_process_was_told_goes_before_the_config_map(log):
    log.start("error")
    use({**zap(level="debug"), "loglevel.controller": "debug"})
    logger("provisioner").warning("quiet")
    assert log.lines() == []


def test_a_logger_that_exists_follows_the_change(log):
    part = logger("provisioner")
    part.debug("before")
    use({"loglevel.controller": "debug"})
    part.debug("after")
    assert [line["message"] for line in log.json()] == ["after"]


def test_outputs_are_standard_streams_and_files(log, tmp_path, capsys):
    use(zap(outputPaths=["stderr", str(tmp_path / "log")]))
    logger("provisioner").info("to two places")
    assert "to two places" in capsys.readouterr().err
    assert json.loads((tmp_path / "log").read_text())["message"] == "to two places"


def test_equal_lines_of_one_second_are_sampled_as_zap_does(log, monkeypatch):
    now = 100.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    use(zap(sampling={"initial": 2, "thereafter": 3}))
    part = logger("provisioner")
    for number in range(8):
        part.info("again", number=number)
    part.info("other")
    now += 1
    part.info("again", number=8)
    written = [line.get("number", line["message"]) for line in log.json()]
    assert written == [0, 1, 4, 7, "other", 8]


def test_where_a_line_comes_from_is_told_when_asked_for(log):
    use(zap(encoding="json", encoderConfig={"callerKey": "caller"}))
    logger("provisioner").info("here")
    (line,) = log.json()
    assert line["caller"].startswith("test_logs:")
    use(zap(encoding="json", disableCaller=True, encoderConfig={"callerKey": "caller"}))
    logger("provisioner").info("here")
    assert "caller" not in log.json()[0]


def test_a_stack_trace_stands_under_its_key(log):
    use(zap(encoding="json", encoderConfig={"stacktraceKey": "stacktrace"}))
    try:
        raise ValueError("broken")
    except ValueError:
        logger("webhook").exception("review failed")
    (line,) = log.json()
    assert "ValueError: broken" in line["stacktrace"]


def test_a_line_says_which_pod_wrote_it(log, monkeypatch):
    monkeypatch.setenv("POD_NAME", "karpenter-1")
    log.start()
    logger("provisioner").info("here")
    assert log.json()[0]["pod"] == "karpenter-1"


def test_a_line_about_a_pod_names_that_one_not_its_writer(log, monkeypatch):
    monkeypatch.setenv("POD_NAME", "karpenter-1")
    log.start()
    logger("evictions").info("evicted pod", pod="shop/web-1")
    assert log.json()[0]["pod"] == "shop/web-1"


def test_an_output_that_fails_is_told_once_and_stops_nobody(log, tmp_path):
    errors = tmp_path / "errors"
    use(zap(outputPaths=["stdout", "/dev/full"], errorOutputPaths=[str(errors)]))
    for number in range(2):
        logger("provisioner").info("on", number=number)
    assert [line["number"] for line in log.json()] == [0, 1]
    assert errors.read_text().splitlines() == ["cannot write logs to /dev/full: No space left on device"]


@pytest.mark.parametrize("encoding", ["json", "console"])
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\0", "\u202e", "x" * 1_000_000])
def test_whatever_stands_in_a_line_it_is_written(log, encoding, text, tmp_path):
    use(zap(encoding=encoding, outputPaths=["stdout", str(tmp_path / "log")]))
    logger("aws").error(f"AWS said {text}", detail={text: [text]})
    (line,) = log.lines()
    assert "AWS said" in line
    assert (tmp_path / "log").read_text(encoding="utf-8") == line + "\n"


def test_a_configuration_that_nobody_foresaw_does_not_keep_the_process_from_starting(log, monkeypatch):
    def fails(*_arguments):
        raise KeyError("a defect that nobody foresaw")

    class Client:
        async def get(self, _path):
            return {"metadata": {"uid": "u-1"}, "data": {"loglevel.controller": "debug"}}

    monkeypatch.setattr("nodeless.manager.live_logging.read_logging", fails)
    live = LiveLogging(fails)
    asyncio.run(live.read(Client(), "kube-system", "config-logging"))
    (line,) = log.json()
    assert "ConfigMap config-logging cannot be used" in line["message"]


def test_libraries_and_stack_traces_come_in_the_same_form(log):
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("library.part").exception("the library failed")
        logger("webhook").exception("review failed")
    # What other tests left running may say something, too.
    first, second = (line for line in log.json() if line["logger"] in ("library.part", "webhook"))
    assert (first["logger"], first["level"]) == ("library.part", "ERROR")
    for line in (first, second):
        assert "ValueError: broken" in line["exception"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"keys: {SECRET}", "keys: (secret)"),
        ("Authorization: Bearer eyJhbGciOi.J9.abc-_", "Authorization: Bearer (secret)"),
        (
            "-----BEGIN EC PRIVATE KEY-----\nMHcC\n-----END EC PRIVATE KEY-----",
            "-----BEGIN EC PRIVATE KEY-----(secret)",
        ),
        ("https://sts/?X-Amz-Signature=0a1b&A=1", "https://sts/?X-Amz-Signature=(secret)&A=1"),
    ],
)
@pytest.mark.parametrize("people", [False, True])
def test_secrets_are_never_shown(log, text, shown, people, monkeypatch):
    log.start(terminal=people)
    logger("aws").error(f"refused: {text}", detail={"header": text})
    written = "\n".join(log.lines())
    assert SECRET not in written
    assert shown.split("(")[0].rsplit("\n", 1)[-1] + "(secret)" in written
    for leaked in ("eyJhbGciOi", "MHcC", "0a1b"):
        assert leaked not in written


@pytest.mark.parametrize(
    ("data", "key", "problem"),
    [
        ({"loglevel.controller": "loud"}, "loglevel.controller", '"loud" is not a level'),
        ({"zap-logger-config": "{"}, "zap-logger-config", "is not JSON"),
        (zap(encoding="xml"), "zap-logger-config", '.encoding: "xml" is not known; hint: use one of'),
        (zap(sampling={"initial": "many"}), "zap-logger-config", ".sampling"),
        (zap(sampling=[]), "zap-logger-config", ".sampling: [] is not a sampling configuration; hint: write"),
        (zap(disableCaller="no"), "zap-logger-config", '.disableCaller: "no" is neither true nor false'),
        (zap(errorOutputPaths="x"), "zap-logger-config", '.errorOutputPaths: "x" is not a list of paths'),
        (zap(outputPaths=[]), "zap-logger-config", ".outputPaths: [] is not a list of paths"),
        (
            zap(outputPaths=["a\0b"]),
            "zap-logger-config",
            '.outputPaths: ["a\\u0000b"] is not a list of paths',
        ),
        (zap(outputPaths=["\ud800"]), "zap-logger-config", "surrogates not allowed"),
        (zap(encoderConfig={"messageKey": "\udfff"}), "zap-logger-config", "surrogates not allowed"),
        (
            {"zap-logger-config": '{"level": ' + "[" * 900 + "]" * 900 + "}"},
            "zap-logger-config",
            "is not a level",
        ),
        ({"zap-logger-config": "[" * 100_000}, "zap-logger-config", "is not JSON"),
        ({"zap-logger-config": '{"sampling": ' + "9" * 5000 + "}"}, "zap-logger-config", "is not JSON"),
        (
            zap(outputPaths=["/no/such/folder/log"]),
            "zap-logger-config",
            "cannot write logs to /no/such/folder",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_once_and_leaves_what_held_before(
    log, data, key, problem
):
    complaints = []
    live = LiveLogging(lambda *told: complaints.append(told))
    live.handle(ConfigMapSeen("config-logging", "u-1", {"loglevel.controller": "debug"}))
    log.lines()
    for _ in range(2):
        live.handle(ConfigMapSeen("config-logging", "u-1", {"loglevel.controller": "debug", **data}))
    (line,) = log.json()
    assert problem in line["message"]
    assert "what held before stays in force" in line["message"]
    ((name, uid, faults),) = complaints
    assert (name, uid, list(faults)) == ("config-logging", "u-1", [key])
    assert logs.configuration().threshold("controller") == LEVELS["debug"]


def test_without_the_config_map_defaults_hold(log):
    live = LiveLogging(lambda *_told: None)
    live.handle(ConfigMapSeen("config-logging", "u-1", {"loglevel.controller": "debug"}))
    live.handle(ConfigMapGone("config-logging"))
    assert logs.configuration() == LoggingConfig()


@pytest.mark.cluster
def test_the_process_changes_its_level_while_it_runs(replicas, api, namespace):
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "config-logging", "namespace": namespace},
        "data": zap(level="error", encoding="json"),
    }
    api.create(document)
    process = replicas("first", AWS_SESSION_TOKEN=SECRET)
    leads(api, namespace, "first")
    assert [line for line in lines(process) if line["level"] == "INFO"] == []
    path = f"/api/v1/namespaces/{namespace}/configmaps/config-logging"
    api.patch(path, {"data": {"loglevel.controller": "info"}})

    def said(part):
        return [line for line in lines(process) if part in line["message"]]

    api.wait(lambda: said("logging is configured anew"), what="the new level")
    (change,) = said("logging is configured anew")
    assert change["controller_level"] == "'' -> 'info'"
    api.patch(path, {"data": {"loglevel.controller": "loud"}})
    api.wait(lambda: said('"loud" is not a level'), what="the complaint")
    assert "what held before stays in force" in said('"loud" is not a level')[0]["message"]
    series = 'nodeless_settings_invalid{config_map="config-logging",key="loglevel.controller"}'
    assert scrape(process)[series] == 1
    event = api.wait(
        lambda: [e for e in api.events(namespace, "config-logging") if e["reason"] == "InvalidSetting"],
        what="the event",
    )[0]
    assert '"loud" is not a level' in event["message"]
    api.patch(path, {"data": {"loglevel.controller": "warn"}})
    api.wait(lambda: series not in scrape(process), what="the correction")
    assert process.poll() is None
    assert SECRET not in process.log.read_text()
