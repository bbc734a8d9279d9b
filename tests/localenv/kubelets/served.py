"""The program that executed pods run in these tests: it stands in a ConfigMap, started by its mounted path.

On the pod's address and port 8081: `/readyz` (503 while the file `unready` is in its emptyDir),
`/environment`, `/arguments`, `/file?<path>`. With a second argument, a directory with a certificate, also an
admission webhook on 8443 that denies everything.
"""

import json
import os
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SCRATCH = Path(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/readyz":
            self.answer(503 if (SCRATCH / "unready").exists() else 200, b"ok")
        elif path == "/environment":
            self.answer(200, json.dumps(dict(os.environ)).encode())
        elif path == "/arguments":
            self.answer(200, json.dumps(sys.argv).encode())
        else:
            self.answer(200, Path(query).read_bytes())

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": f"denied by {os.environ['POD_NAME']}"}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        self.answer(200, json.dumps(body).encode())

    def answer(self, code, body):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_webhook(certificates):
    server = ThreadingHTTPServer((os.environ["POD_IP"], 8443), Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(f"{certificates}/tls.crt", f"{certificates}/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.stdout.write(f"serving {os.environ['POD_NAME']}\n")
    sys.stdout.flush()
    if len(sys.argv) > 2:
        threading.Thread(target=serve_webhook, args=sys.argv[2:], daemon=True).start()
    ThreadingHTTPServer((os.environ["POD_IP"], 8081), Handler).serve_forever()
