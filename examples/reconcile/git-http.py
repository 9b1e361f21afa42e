#!/usr/bin/env python3
"""Serves the bare repositories of a folder on this machine, by Git's own http-backend.

    python3 git-http.py FOLDER [PORT]      port 0, the default, takes a free one

It prints its address and serves until it is ended. Everybody on this machine may read
and push: it is for trying sluice reconcile out, and for nothing else.

Tested by testacc: TestTheReconcilersQuickStartIsFollowedLiterally, TestTheReconcilersDemoEndsWell.
"""

import http.server
import os
import subprocess
import sys


class Backend(http.server.BaseHTTPRequestHandler):
    """One request is one run of git http-backend, which speaks CGI."""

    protocol_version = "HTTP/1.1"
    root = ""

    def serve(self):
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "http.receivepack",
            "GIT_CONFIG_VALUE_0": "true",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=self.body(), env=environment, stdout=subprocess.PIPE, check=False)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        """The request's body; git sends a large push in chunks."""
        if self.headers.get("Transfer-Encoding", "") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    do_GET = do_POST = serve

    def log_message(self, *_):
        """Says nothing: the address is all that is printed."""


def main():
    if len(sys.argv) not in (2, 3) or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    Backend.root = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) == 3 else 0), Backend)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


main()
