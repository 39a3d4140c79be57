"""A MariaDB server of the tests' own: Debian's, in a temporary folder, on a Unix socket."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path


@contextlib.contextmanager
def running():
    """The socket of a server with an empty database ``tests``, which ends with the block."""
    program = shutil.which("mariadbd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        raise RuntimeError("the slow tests need MariaDB: apt-get install mariadb-server-core")
    with tempfile.TemporaryDirectory(prefix="sqlkrp-mariadb-") as folder:
        data, address = Path(folder) / "data", f"{folder}/socket"
        data.mkdir()
        # It will not run as root unless it is told to.
        command = [program, "--no-defaults", f"--datadir={data}", "--skip-grant-tables",
                   *(["--user=root"] if os.geteuid() == 0 else [])]  # fmt: skip
        subprocess.run(
            [*command, "--bootstrap"], input=b"CREATE DATABASE tests;", check=True,
            capture_output=True,
        )  # fmt: skip
        with (Path(folder) / "log").open("wb") as log:
            server = subprocess.Popen(
                [*command, "--skip-networking", f"--socket={address}", f"--pid-file={folder}/pid"],
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            _wait(server, address, Path(folder) / "log")
            yield address
        finally:
            server.terminate()
            server.wait(60)


def _wait(server, address, log):
    end = time.monotonic() + 60
    while True:
        # Not by the driver, which leaves sockets open where nobody answers.
        with socket.socket(socket.AF_UNIX) as one:
            try:
                one.connect(address)
            except OSError:
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                time.sleep(0.02)
            else:
                return
