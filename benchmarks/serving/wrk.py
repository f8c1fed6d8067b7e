"""The load generator wrk: so many clients, each with one request at a time."""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile


def run(server, texts, clients, seconds=3600, most=0, rate=0):
    """Asks for translations, until the time is over or all is answered.

    Args:
        server: a `servers.Server`.
        texts: what is translated in turn.
        clients: connections, each of which stays open.
        seconds: the most seconds.
        most: the most answers, if not 0.
        rate: the requests that are sent a second, if not 0.

    Returns:
        `answered` (200), `refused` (429), `failed` (any other status), `lost`
        (no answer), `seconds`, and of all answers the milliseconds `p50` and
        `p99`. At most one in a hundred of those with 200 took longer than the
        milliseconds `p99_answered`.
    """
    if shutil.which("wrk") is None:
        sys.exit("Expected the program wrk: apt install wrk. Received: none")
    script = pathlib.Path(__file__).with_name("wrk.lua")
    with tempfile.NamedTemporaryFile("wb", suffix=".jsonl") as bodies:
        bodies.write(b"\n".join(map(server.body, texts)))
        bodies.flush()
        command = ["wrk", "--threads=1", f"--connections={clients}"]
        command += [f"--duration={seconds:.0f}s", "--timeout=60s"]
        command += [f"--script={script}", server.url, "--", bodies.name]
        command += [str(most), str(rate)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for line in process.stdout:
                if line == "enough\n":
                    process.send_signal(signal.SIGINT)
    if process.returncode:
        sys.exit(f"{command}\n{line}")
    return json.loads(line)
