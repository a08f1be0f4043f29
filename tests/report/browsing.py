"""Reports in a real browser: Debian's Chromium, headless, over the loopback address."""

import html
import json
import re
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_RESULT = re.compile(r'<pre id="result">(.*?)</pre>', re.DOTALL)
_WRITE = """
<script>addEventListener("load", async () => {
  const result = await (async () => { %s })();
  const place = document.createElement("pre");
  place.id = "result";
  place.textContent = JSON.stringify(result);
  document.body.append(place);
});</script>
"""
_FRAME = """<!doctype html><body><iframe src="page.html" width="%d" height="800"></iframe>"""


class _Quiet(SimpleHTTPRequestHandler):
    def __init__(self, *arguments, requests, **keywords):
        self.requests = requests
        super().__init__(*arguments, **keywords)

    def do_GET(self):
        self.requests.append(self.path)
        super().do_GET()

    def end_headers(self):
        # Pages of one second would be told apart by nothing in the browser's cache.
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format, *arguments):
        pass


class Browser:
    """Opens a report, runs a script in it, and says what that returned and what was asked for."""

    def __init__(self, folder):
        self.folder, self.requests = folder, []
        handler = partial(_Quiet, directory=str(folder), requests=self.requests)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def run(self, report, script, *, width=None, fragment=""):
        """The value that ``script`` returns in the page, or in one that frames it at a width."""
        text = report.read_text(encoding="utf-8")
        (self.folder / "page.html").write_text(text, encoding="utf-8")
        if width is None:
            # The page lets no script run but its own: one for a test has to be let in.
            text = re.sub(r"script-src [^\"]*\"", "script-src 'unsafe-inline'\"", text, count=1)
        else:
            text = _FRAME % width
        (self.folder / "test.html").write_text(text + _WRITE % script, encoding="utf-8")
        self.requests.clear()
        dom, self.log = self._open(f"test.html{fragment}")
        return json.loads(html.unescape(_RESULT.search(dom)[1]))

    def untouched(self, report):
        """The DOM of the report as it was written."""
        shutil.copy(report, self.folder / "page.html")
        self.requests.clear()
        dom, self.log = self._open("page.html")
        return dom

    def _open(self, page):
        done = subprocess.run(
            [
                CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                f"--user-data-dir={self.folder / 'profile'}", "--window-size=1280,900",
                "--enable-logging=stderr", "--virtual-time-budget=3000",
                "--disable-background-networking",
                f"http://127.0.0.1:{self.server.server_port}/{page}",
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]
