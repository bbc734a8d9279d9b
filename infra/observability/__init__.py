"""Alerts for Prometheus and dashboards for Grafana, of the metrics that the controller exposes.

`python -m infra.observability` writes them where the chart `nodeless` takes them from, and their page in docs/.
"""
