"""Spark as an engine: a session and DataFrames in, DataFrames, tables and folders out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from support import dyadic, forms_of, paper_krp

import sqlkrp
from sqlkrp.engines.session import Storage
from sqlkrp.errors import (
    ColumnError,
    EngineError,
    LimitError,
    MissingValueError,
    ParameterError,
    TargetExistsError,
)

pytestmark = pytest.mark.slow

FRAME = dyadic(40, 6).assign(id=range(40), name="x")
COLUMNS = [f"c{i}" for i in range(6)]


def as_frame(session, frame):
    arrow = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    return session.createDataFrame(arrow)


@pytest.fixture
def spark(spark_session):
    empty(spark_session)  # of what tests of engines left: a view would hide a table
    as_frame(spark_session, FRAME).write.mode("overwrite").saveAsTable("t")
    yield spark_session
    empty(spark_session)


def empty(session):
    """Drop every table, and every view, temporary ones too."""
    for row in session.sql("SHOW VIEWS").collect():
        session.sql(f"DROP VIEW IF EXISTS `{row[1].replace('`', '``')}`")
    for row in session.sql("SHOW TABLES").collect():
        session.sql(f"DROP TABLE IF EXISTS `{row[1].replace('`', '``')}`")


@pytest.fixture
def db(spark):
    return sqlkrp.connect(spark)


def rows(made):
    """Rows in order, with the items of an array beside each other."""
    found = [np.hstack([np.asarray(one, dtype=float) for one in row]) for row in made.collect()]
    return np.array(sorted(map(tuple, found)))


def names(spark):
    return sorted(row[1] for row in spark.sql("SHOW TABLES").collect())


@pytest.mark.parametrize("form", forms_of("spark"))
def test_create_makes_a_table_and_nothing_else(spark, db, krp, form):
    run = db.create(krp, "t", "f", keep=["id"], form=form)
    assert (run.rows, run.statement.form) == (40, form)
    assert names(spark) == ["f", "t"]
    found = rows(spark.table("f"))
    assert np.allclose(found[:, 1:], krp.transform(FRAME), rtol=1e-12)
    about = {row[0]: row[1] for row in spark.sql("DESCRIBE TABLE EXTENDED f").collect()}
    assert about["Comment"] == f"sqlkrp map {krp.digest_}"
    with pytest.raises(TargetExistsError, match="exists already"):
        db.create(krp, "t", "F")
    assert db.verify(krp, "t", form=form).ok


def test_a_dataframe_goes_in_and_a_lazy_one_comes_out(spark, krp):
    """Also one with names that Spark's own way to put in a DataFrame would read as its marks."""
    odd = {"c0": "a{b}", "c1": "c`d", "c2": "{}", "c3": "e.f", "c4": "x y", "c5": "select"}
    frame = FRAME.rename(columns=odd)
    db = sqlkrp.connect(spark)
    one = paper_krp(2, 5, n_terms=2, random_state=0)
    one.fit(db.source(as_frame(spark, frame)), exclude=["id"])
    made = db.relation(one, as_frame(spark, frame), keep=["id"], output="array")
    assert made.columns == ["id", "krp"]
    found = sorted(made.collect())
    assert np.allclose([row[1] for row in found], one.transform(frame), rtol=1e-12)
    joined = made.join(spark.table("t"), "id").filter("id < 3")
    assert joined.count() == 3
    assert names(spark) == ["t"]


def test_the_seed_draws_the_map_that_it_draws_in_duckdb(db, connection):
    parameters = {"random_state": 3, "scaling": "standard"}
    one = sqlkrp.KRP(2, 7, **parameters).fit(db.source("t"), exclude=["id"])
    connection.register("frame", FRAME)
    connection.execute("CREATE TABLE t AS FROM frame")
    other = sqlkrp.KRP(2, 7, **parameters).fit(
        sqlkrp.connect(connection).source("t"), exclude=["id"]
    )
    assert one.digest_ == other.digest_


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_export_writes_a_folder_that_is_whole_or_not_there(spark, db, krp, tmp_path, kind):
    path = tmp_path / f"f.{kind}"
    run = db.export(krp, "t", path, keep=["id", "name"])
    assert run.rows == 40
    assert (path / "_SUCCESS").exists()
    read = spark.read.option("header", True).format(kind).load(str(path))
    found = rows(read.drop("name"))
    found = found[np.argsort(found[:, 0])]
    assert np.allclose(found[:, 1:], krp.transform(FRAME), rtol=1e-12)
    with pytest.raises(TargetExistsError):
        db.export(krp, "t", path)
    db.export(krp, "t", path, replace=True)
    spark.sql("CREATE VIEW broken AS SELECT *, IF(id = 7, raise_error('no row'), c0) AS c9 FROM t")
    other = paper_krp(2, 5, n_terms=2, nulls="zero", random_state=0).fit([*COLUMNS, "c9"])
    with pytest.raises(EngineError, match=r"writing .*no row") as told:
        db.export(other, "broken", tmp_path / f"g.{kind}")
    assert "\n" not in str(told.value)
    with pytest.raises(EngineError, match=r"creating .*no row"):
        db.create(other, "broken", "g")
    assert names(spark) == ["broken", "t"]
    # A task beside the one that failed may end later, and leave its empty folders.
    table = spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")
    for folder in (tmp_path / f"g.{kind}", Path(table, "g")):
        (folder / "_temporary" / "0").mkdir(parents=True, exist_ok=True)
    db.create(krp, "t", "g")
    assert db.export(krp, "t", tmp_path / f"g.{kind}").rows == 40
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, f"g.{kind}"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_scores_are_columns_in_a_folder_too(spark, db, krp, tmp_path, kind):
    """Where features would be an array."""
    model = sqlkrp.model(map=krp, coef=np.ones(len(krp.program.names)), classes=["no", "yes"])
    path = tmp_path / f"s.{kind}"
    assert db.score(model, "t", path=path, keep=["id"]).rows == 40
    read = spark.read.option("header", True).format(kind).load(str(path))
    assert read.columns == ["id", "label", "decision"]
    said = {int(row[0]): row[1] for row in read.collect()}
    expected = model.predict(FRAME).tolist()
    assert [said[one] for one in FRAME["id"].tolist()] == expected


def test_what_another_made_meanwhile_is_left_alone(spark, db, krp, tmp_path, monkeypatch):
    """Where nothing was when it was looked for, and something is when it is written."""
    spark.sql("CREATE TABLE f AS SELECT 1 AS precious")
    monkeypatch.setattr(type(db._session), "find", lambda *_: None)
    with pytest.raises(EngineError, match="creating f failed"):
        db.create(krp, "t", "f")
    assert spark.table("f").collect()[0].precious == 1
    path = tmp_path / "f.parquet"

    def export_beside_another():
        with db._session.destination(path, Storage()) as write:
            spark.sql("SELECT 1 AS precious").write.parquet(str(path))
            write("SELECT 2 AS other", None)

    with pytest.raises(EngineError, match="already exists"):
        export_beside_another()
    assert spark.read.parquet(str(path)).collect()[0].precious == 1


def test_a_missing_value_is_told_before_anything_is_made(spark, db, krp):
    holes = FRAME.copy()
    holes.loc[3, "c1"] = np.nan
    as_frame(spark, holes).createOrReplaceTempView("holes")
    with pytest.raises(MissingValueError, match=r"'c1' \(1\)"):
        db.create(krp, "holes", "f")
    assert "f" not in names(spark)
    for form in forms_of("spark"):
        with pytest.raises(Exception, match="missing value"):
            db.relation(krp, "holes", form=form).collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    "kind", ["TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38,0)",
             "DECIMAL(18,3)", "BOOLEAN"],
)  # fmt: skip
def test_every_number_is_read_without_overflow(spark, db, kind, ansi):
    top = {"TINYINT": 127, "SMALLINT": 32767, "BOOLEAN": 1}.get(kind, 10**8)
    columns = ", ".join(f"CAST({{}} AS {kind}) AS c{i}" for i in range(6))
    values = [[top] * 6, [0] * 6, [1, 0, 1, 0, 1, 1]]
    made = " UNION ALL ".join(f"SELECT {columns.format(*row)}" for row in values)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        spark.sql(made).createOrReplaceTempView("n")
        one = paper_krp(2, 8, s=1, n_terms=2, random_state=0, dtype="float64").fit(db.source("n"))
        assert one.n_features_in_ == 6
        for form in forms_of("spark"):
            assert db.verify(one, "n", form=form).ok, form
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_rows_are_the_same_however_they_are_parted(spark, db, krp):
    """Skew, and a thousand parts of which most are empty: each row once, and the same numbers."""
    skewed = as_frame(spark, FRAME).repartition(1000, "name")
    spread = as_frame(spark, FRAME).repartition(7)
    for form in forms_of("spark"):
        found = [rows(db.relation(krp, one, keep=["id"], form=form)) for one in (skewed, spread)]
        assert np.array_equal(*found)
        assert np.allclose(found[0][:, 1:], krp.transform(FRAME), rtol=1e-12)


def test_what_is_no_table_here_is_told_in_one_line(spark, db, krp, tmp_path):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(ParameterError, match="Structured Streaming"):
        db.relation(krp, stream)
    with pytest.raises(ColumnError, match="cannot read nowhere"):
        db.create(krp, "nowhere", "f")
    with pytest.raises(ParameterError, match=r"folders of Parquet or CSV.*use \.parquet or \.csv"):
        db.export(krp, "t", tmp_path / "f.txt")
    with pytest.raises(ParameterError, match="Spark reads Parquet here"):
        db.source(tmp_path / "t.csv")


def test_files_and_views(spark, db, krp, tmp_path):
    as_frame(spark, FRAME).write.parquet(str(tmp_path / "big.parquet"))
    for table in (tmp_path / "big.parquet", f"parquet.`{tmp_path}/big.parquet`"):
        found = rows(db.relation(krp, table, keep=["id"]))
        assert np.allclose(found[:, 1:], krp.transform(FRAME), rtol=1e-12)
    db.create(krp, "t", "v", view=True, keep=["id"])
    assert np.allclose(rows(spark.table("v"))[:, 1:], krp.transform(FRAME), rtol=1e-12)


@pytest.mark.parametrize("replace", [False, True])
def test_an_interrupt_while_the_rows_of_a_table_are_counted(db, spark, krp, monkeypatch, replace):
    """A new table goes again; one in the place of an old one, which is gone, stays."""
    if replace:
        db.create(krp, "t", "f")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(db._session), "_count", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.create(krp, "t", "f", replace=replace)
    assert spark.catalog.tableExists("f") == replace


def test_a_table_that_cannot_be_dropped_for_a_new_one_stays_alone(db, spark, krp, monkeypatch):
    db.create(krp, "t", "f")
    execute = type(db._session).execute

    def refused(session, sql, what):
        if what.startswith("dropping the old"):
            raise EngineError("no right to drop it")
        execute(session, sql, what)

    monkeypatch.setattr(type(db._session), "execute", refused)
    with pytest.raises(EngineError, match="no right"):
        db.create(krp, "t", "f", replace=True)
    assert names(spark) == ["f", "t"]


def test_the_session_is_left_as_it_was(spark, krp):
    before = sorted(spark.sql("SET").collect())
    with sqlkrp.connect(spark) as db:
        db.create(krp, "t", "f", form="tables")
        db.verify(krp, "t")
    assert spark.sql("SELECT 1").collect()  # closing what was given does not stop it
    assert sorted(spark.sql("SET").collect()) == before
    assert spark.getTags() == set()


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_side_tables_are_loaded_by_their_script(spark, krp, tmp_path, format):
    krp.save_tables(tmp_path / "side", dialect="spark", format=format)
    script = (tmp_path / "side" / "load.sql").read_text()
    before = spark.conf.get("spark.sql.storeAssignmentPolicy")
    try:
        for statement in re.sub(r"^--.*$", "", script, flags=re.MULTILINE).split(";\n"):
            if statement.strip():
                path = f"path '{tmp_path}/side/"
                spark.sql(statement.replace("path '", path))
        made = spark.sql(krp.to_sql("t", dialect="spark", form="tables", keep=["id"]))
        assert np.allclose(rows(made)[:, 1:], krp.transform(FRAME), rtol=1e-12)
    finally:
        spark.conf.set("spark.sql.storeAssignmentPolicy", before)


CONNECT = """
import os, sys, tempfile
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
import sqlkrp

folder = tempfile.mkdtemp()
spark = (SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
         .config("spark.sql.shuffle.partitions", "2")
         .config("spark.sql.warehouse.dir", folder).getOrCreate())
assert type(spark).__module__.startswith("pyspark.sql.connect")
X = np.random.default_rng(0).integers(-40, 41, (40, 5)) / 8
rows = {"id": np.arange(40), **{f"c{i}": X[:, i] for i in range(5)}}
frame = spark.createDataFrame(pa.table(rows))
db = sqlkrp.connect(spark)
krp = sqlkrp.KRP(2, 9, random_state=0, scaling=None, coef0=0, gamma=1.0)
krp.fit(db.source(frame), exclude=["id"])
for form in ("wide", "array", "tables"):
    made = db.relation(krp, frame, keep=["id"], form=form)
    found = np.array([row.krp for row in sorted(made.collect())])
    assert np.allclose(found, krp.transform(X), rtol=1e-12), form
frame.write.saveAsTable("t")
assert db.create(krp, "t", "f", keep=["id"]).rows == 40
assert db.verify(krp, "t").ok and db.verify(krp, "t", form="tables").ok
assert db.export(krp, "t", folder + "/o.parquet").rows == 40
assert os.path.exists(folder + "/o.parquet/_SUCCESS")
values = np.random.default_rng(0).normal(size=(1500, 4))
table = pa.table({**{f"c{i}": values[:, i] for i in range(3)}, "y": values.sum(axis=1)})
source, options = db.source(spark.createDataFrame(table)), {"maps": [], "sample": 200}
there, here = (sqlkrp.train(one, "y", **options) for one in (source, table.to_pandas()))
assert np.allclose(there.predict(values[:, :3]), here.predict(values[:, :3]))
assert there.training["bytes_read"] != here.training["bytes_read"]  # it did run there
print("equal")
spark.stop()
"""


def test_spark_connect_is_a_session_as_any(tmp_path):
    """In a process of its own, as one process has either a classic session or one of Connect."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONNECT],
        capture_output=True, text=True, cwd=tmp_path, timeout=300,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["equal"], done.stderr[-3000:]


# --- how results are kept -------------------------------------------------------------------------


def test_features_are_one_array_unless_columns_are_asked_for(spark, db, krp, tmp_path):
    db.create(krp, "t", "f", keep=["id"])
    assert spark.table("f").columns == ["id", "krp"]
    assert db.relation(krp, "t", output="columns").columns == list(krp.get_feature_names_out())
    db.export(krp, "t", tmp_path / "f.parquet")
    assert spark.read.parquet(str(tmp_path / "f.parquet")).columns == ["krp"]
    db.export(krp, "t", tmp_path / "f.csv")  # a CSV file has no arrays
    assert spark.read.csv(str(tmp_path / "f.csv"), header=True).columns == [
        *krp.get_feature_names_out()
    ]


def test_vectors_are_those_that_spark_s_models_read(spark, db, krp):
    one = paper_krp(2, 5, n_terms=2, nulls="propagate", random_state=0).fit(COLUMNS)
    holes = FRAME.copy()
    holes.loc[3, "c1"] = np.nan
    made = db.relation(one, as_frame(spark, holes), keep=["id"], output="vector")
    found = {row.id: row.krp for row in made.collect()}
    expected = one.transform(holes)
    assert found.pop(3) is None
    assert all(np.allclose(v.toArray(), expected[i], rtol=1e-12) for i, v in found.items())
    db.create(krp, "t", "f", keep=["id"], output="vector")
    assert spark.table("f").schema["krp"].dataType.typeName() == "vectorudt"
    with pytest.raises(ParameterError, match="a view is SQL alone"):
        db.create(krp, "t", "v", view=True, output="vector")
    with pytest.raises(ParameterError, match="made by a session of Spark's"):
        krp.to_sql("t", dialect="spark", output="vector")


def test_an_old_table_is_there_until_the_new_one_is_whole(spark, db, krp):
    spark.sql("CREATE TABLE f AS SELECT 1 AS precious")
    spark.sql("CREATE VIEW broken AS SELECT *, IF(id = 7, raise_error('no row'), c0) AS c9 FROM t")
    other = paper_krp(2, 5, n_terms=2, nulls="zero", random_state=0).fit([*COLUMNS, "c9"])
    with pytest.raises(EngineError, match=r"creating .*no row"):
        db.create(other, "broken", "f", replace=True)
    assert spark.table("f").collect()[0].precious == 1
    assert names(spark) == ["broken", "f", "t"]
    assert db.create(krp, "t", "f", keep=["id"], replace=True).rows == 40
    assert spark.table("f").count() == 40
    assert names(spark) == ["broken", "f", "t"]
    with pytest.raises(LimitError, match="may lose the parts"):
        db.create(krp, "t", "f", keep=["name"], replace=True, partition_by=["name"])
    assert spark.table("f").count() == 40
    db.create(krp, "t", "v", view=True)
    db.create(krp, "t", "v", view=True, keep=["id"], replace=True)
    assert "id" in spark.table("v").columns


def test_rows_are_appended_to_what_the_same_map_made(spark, db, krp):
    few, more = (as_frame(spark, FRAME[FRAME.id % 2 == part]) for part in (0, 1))
    options = {"keep": ["name", "id"], "append": True, "partition_by": ["name"], "format": "orc"}
    assert db.create(krp, few, "f", **options).rows == 20
    assert db.create(krp, more, "f", **options).rows == 20
    found = sorted((row.id, row.krp) for row in spark.table("f").collect())
    assert [one for one, _ in found] == list(range(40))
    assert np.allclose([one for _, one in found], krp.transform(FRAME), rtol=1e-12)
    about = {row[0]: row[1] for row in spark.sql("DESCRIBE TABLE EXTENDED f").collect()}
    assert about["Provider"].lower() == "orc"
    other = paper_krp(2, 5, n_terms=2, random_state=1).fit(COLUMNS)
    with pytest.raises(TargetExistsError, match="was not made by this map"):
        db.create(other, "t", "f", append=True, keep=["name", "id"])
    with pytest.raises(ColumnError, match="'name' is not in both"):
        db.create(krp, "t", "f", append=True, keep=["id"])
    with pytest.raises(ParameterError, match="both given"):
        db.create(krp, "t", "f", append=True, replace=True)
    with pytest.raises(ColumnError, match="'id' is not handed on"):
        db.create(krp, "t", "g", partition_by=["id"])
    with pytest.raises(ParameterError, match="no name of a format"):
        db.create(krp, "t", "g", format="parquet AS SELECT 1 --")
    assert spark.table("f").count() == 40


def test_rows_are_added_by_a_key_that_is_not_there_yet(spark, db, krp, tmp_path):
    growing = {"append": True, "key": "id"}
    as_frame(spark, FRAME[:30]).createOrReplaceTempView("v")
    assert db.create(krp, "v", "f", **growing, limit=12).rows == 12
    assert db.create(krp, "v", "f", **growing).rows == 18
    # What a driver that was killed left a part of, the next run completes.
    assert db.create(krp, as_frame(spark, FRAME), "f", **growing).rows == 10
    assert db.create(krp, "t", "f", **growing).rows == 0
    found = sorted((row.id, row.krp) for row in spark.table("f").collect())
    assert [one for one, _ in found] == list(range(40))
    assert np.allclose([one for _, one in found], krp.transform(FRAME), rtol=1e-12)
    model = sqlkrp.model(map=krp, coef=np.arange(5.0))
    assert db.score(model, "v", into="s", **growing).rows == 30
    assert db.score(model, "t", into="s", **growing).rows == 10
    assert db.export(krp, "t", tmp_path / "look.parquet", limit=3).rows == 3
    other = paper_krp(2, 5, n_terms=2, random_state=1).fit(COLUMNS)
    with pytest.raises(TargetExistsError, match="was not made by this map"):
        db.create(other, "t", "f", **growing)
    with pytest.raises(LimitError, match="spark has no rows that are replaced here: append"):
        db.create(krp, "t", "f", upsert=True, key="id")
    with pytest.raises(LimitError, match="spark has no table macros"):
        db.macro(krp, "m")
    as_frame(spark, FRAME.assign(id=FRAME.id // 2)).createOrReplaceTempView("twice")
    with pytest.raises(ColumnError, match="'id' is not unique in twice"):
        db.create(krp, "twice", "g", **growing)
    assert names(spark) == ["f", "s", "t", "twice", "v"]


def test_folders_are_appended_to_and_parted(spark, db, krp, tmp_path):
    path = tmp_path / "f"
    options = {"keep": ["name", "id"], "format": "orc", "partition_by": ["name"]}
    assert db.export(krp, "t", path, **options).rows == 40
    assert (path / "name=x").is_dir()
    assert db.export(krp, "t", path, append=True, **options).rows == 40
    assert spark.read.orc(str(path)).count() == 80


# --- NumPy on the executors -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("output", ["array", "columns", "vector"])
def test_numpy_on_the_executors_agrees_with_the_sql(spark, db, dtype, output, tmp_path):
    one = paper_krp(2, 5, n_terms=2, dtype=dtype, nulls="propagate", random_state=0).fit(COLUMNS)
    holes = FRAME.copy()
    holes.loc[3, "c1"] = np.nan
    frame = as_frame(spark, holes)
    found = {}
    for how in ("sql", "arrow"):
        made = db.relation(one, frame, keep=["name", "id"], how=how, output=output)
        assert made.columns[:2] == ["name", "id"]
        found[how] = made.columns, sorted(made.collect(), key=lambda row: row.id)
    assert found["sql"] == found["arrow"]
    run = db.create(one, frame, "f", keep=["id"], how="arrow", output=output)
    assert (run.rows, run.statement.form) == (40, "arrow")
    path = tmp_path / "f.parquet"
    assert db.export(one, frame, path, how="arrow", output=output).rows == 40


def test_numpy_on_the_executors_stops_at_a_missing_value(spark, db, krp):
    holes = FRAME.copy()
    holes.loc[3, "c1"] = np.nan
    with pytest.raises(MissingValueError, match=r"'c1' \(1\)"):
        db.create(krp, as_frame(spark, holes), "f", how="arrow")
    with pytest.raises(Exception, match="missing values"):
        db.relation(krp, as_frame(spark, holes), how="arrow").collect()
    with pytest.raises(ParameterError, match="reads rows with one column a feature"):
        db.relation(krp, "t", how="arrow", long=("id", "name", "c0"))
    with pytest.raises(ParameterError, match="a view is SQL alone"):
        db.create(krp, "t", "v", view=True, how="arrow")


# --- pipelines of Spark's -------------------------------------------------------------------------


def test_a_map_is_a_stage_of_a_pipeline(spark, krp, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.classification import LogisticRegression

    frame = as_frame(spark, FRAME.assign(y=(FRAME.id % 3 == 0) * 1))
    expected = krp.transform(FRAME)
    made = krp.to_spark_ml().transform(frame)
    assert made.columns == [*frame.columns, "krp"]
    assert np.allclose([row.krp for row in made.sort("id").collect()], expected, rtol=1e-12)
    assert krp.to_spark_ml(keep=["y"]).transform(frame).columns == ["y", "krp"]
    assert krp.to_spark_ml(keep=[], output="columns").transform(frame).columns == [
        *krp.get_feature_names_out()
    ]
    stages = [krp.to_spark_ml(output="vector"), LogisticRegression(featuresCol="krp", labelCol="y")]
    fitted = Pipeline(stages=stages).fit(frame)
    fitted.write().save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    scored = again.transform(frame.drop("y")).sort("id").collect()  # new rows have no label
    assert np.allclose([row.krp.toArray() for row in scored], expected, rtol=1e-12)
    assert {row.prediction for row in scored} <= {0.0, 1.0}


def test_a_stage_of_a_pipeline_refuses_what_it_cannot_be(spark):
    with pytest.raises(ColumnError, match="holds __THIS__"):
        paper_krp(2, 5, random_state=0).fit(["a", "__THIS__"]).to_spark_ml()
    with pytest.raises(LimitError, match="no room for side tables"):
        paper_krp(2, 5, random_state=0).fit(["a", "b"]).to_spark_ml(form="tables")


# --- what a fresh user found ----------------------------------------------------------------------


def test_a_folder_that_is_read_is_never_emptied(spark, db, krp, tmp_path):
    path = tmp_path / "big.parquet"
    as_frame(spark, FRAME).write.parquet(str(path))
    spark.sql(f"CREATE TABLE outside USING parquet LOCATION '{path}'")
    for source in (f"parquet.`{path}`", spark.read.parquet(str(path)), "outside"):
        for how in ("sql", "arrow"):
            with pytest.raises(ParameterError, match="is read by this"):
                db.export(krp, source, path, replace=True, how=how)
    assert spark.read.parquet(str(path)).count() == 40
    db.export(krp, f"parquet.`{path}`", tmp_path / "big.parquet2", format="parquet")
    db.export(krp, f"parquet.`{path}`", tmp_path / "big.parquet2", format="parquet", replace=True)


def test_a_folder_takes_only_rows_like_its_own(spark, db, krp, tmp_path):
    tmp_path = tmp_path / "day=1"  # which is no part of the folders in it
    tmp_path.mkdir()
    parted, array, csv = tmp_path / "p.parquet", tmp_path / "a.parquet", tmp_path / "f.csv"
    db.export(krp, "t", parted, keep=["name", "id"], partition_by=["name"])
    with pytest.raises(ParameterError, match=r"parted otherwise: give partition_by=\['name'\]"):
        db.export(krp, "t", parted, keep=["name", "id"], append=True)
    db.export(krp, "t", array)
    with pytest.raises(ParameterError, match="is not parted: give no partition_by"):
        db.export(krp, "t", array, keep=["name"], append=True, partition_by=["name"])
    for output in ("columns", "vector"):
        with pytest.raises(ColumnError, match="do not have the same columns"):
            db.export(krp, "t", array, append=True, output=output)
    with pytest.raises(EngineError, match="writing"):
        db.export(krp, "t", array, append=True, format="orc")
    db.export(krp, "t", csv, keep=["id", "name"])
    with pytest.raises(ColumnError, match="do not have the same columns"):
        db.export(krp, "t", csv, keep=["name", "id"], append=True)
    assert [spark.read.parquet(str(path)).count() for path in (parted, array)] == [40, 40]
    assert db.export(krp, "t", csv, keep=["id", "name"], append=True).rows == 40


def test_a_table_takes_only_rows_like_its_own(spark, db, krp):
    db.create(krp, "t", "f", keep=["id"])
    with pytest.raises(TargetExistsError, match="was not made by this map"):
        db.create(krp, "t", "f", keep=["id"], append=True, stage="projection")
    with pytest.raises(ColumnError, match="'krp' is not in both, or of another type"):
        db.create(krp, "t", "f", keep=["id"], append=True, output="vector")
    with pytest.raises(ParameterError, match="is kept as parquet: append to it without format"):
        db.create(krp, "t", "f", keep=["id"], append=True, format="orc")
    with pytest.raises(ParameterError, match="is not parted"):
        db.create(krp, "t", "f", keep=["id"], append=True, partition_by=["id"])
    assert spark.table("f").count() == 40


def test_java_s_own_errors_are_one_line(spark, db, krp, tmp_path):
    for call in (
        lambda: db.create(krp, "t", "f", format="nosuch"),
        lambda: db.export(krp, "t", tmp_path / "f", format="nosuch"),
        lambda: db.export(krp, "t", "s3://nowhere/f.parquet"),
    ):
        with pytest.raises(EngineError) as told:
            call()
        assert "\n" not in str(told.value)
        assert len(str(told.value)) < 400
    with pytest.raises(ParameterError, match="form and plan are of SQL"):
        db.relation(krp, "t", how="arrow", form="wide")
    with pytest.raises(ParameterError, match="a view cannot read a DataFrame"):
        db.create(krp, spark.table("t"), "v", view=True)


def test_stages_of_pipelines_stand_beside_each_other(spark, krp):
    from pyspark.ml import Pipeline

    frame = as_frame(spark, FRAME.assign(krp_0=1.0, krp=2.0))
    two = [krp.to_spark_ml(output="vector", name=name) for name in ("one", "two")]
    made = Pipeline(stages=two).fit(frame).transform(frame)
    assert made.columns == [*frame.columns, "one", "two"]
    assert all(row.one == row.two for row in made.collect())
    one = paper_krp(2, 5, nulls="propagate", random_state=0).fit(COLUMNS)
    with pytest.raises(ParameterError, match="stops at a missing value"):
        one.to_spark_ml(output="vector")


def test_stored_rows_are_verified_in_tables_and_in_folders(db, spark, krp, tmp_path):
    db.create(krp, "t", "f", keep=["id"])
    db.export(krp, "t", tmp_path / "f.parquet", keep=["id"])
    db.export(krp, "t", tmp_path / "f.csv", keep=["id"])
    db.create(krp, "t", "columns", keep=["id"], output="columns")
    parts = tmp_path / "f.csv" / "*.csv"  # which Spark does not read here, and DuckDB does
    for result in ("f", tmp_path / "f.parquet", "columns", parts, spark.table("f")):
        found = db.verify(krp, "t", result=result, key="id", sample=30)
        assert (found.ok, found.rows) == (True, 30)
    spark.sql("SELECT * FROM columns WHERE id <> 7").createOrReplaceTempView("fewer")
    spark.sql("SELECT id, krp_0, 9 AS krp_1, krp_2, krp_3, krp_4 FROM columns WHERE id = 3 UNION "
              "SELECT * FROM fewer WHERE id <> 3").createOrReplaceTempView("changed")  # fmt: skip
    found = db.verify(krp, "t", result="changed", key="id")
    assert [(found.stored.keys[place], wrong) for place, wrong in found.wrong_rows()] == [
        ((3,), ["krp_1"])
    ]
    assert found.stored.missing == ((7,),)
    model = sqlkrp.model(map=krp, coef=np.arange(15).reshape(3, 5), classes=["a", "b", "c"])
    db.score(model, "t", into="s", keep=["id"])
    assert db.verify(model, "t", result="s", key="id").ok
    db.create(krp, "t", "vectors", keep=["id"], output="vector")
    assert db.verify(krp, "t", result="vectors", key="id").ok


@pytest.mark.parametrize("seen", [bool, int, float])
def test_truth_values_and_numbers_are_the_same_categories(spark, db, seen):
    flag = FRAME.id % 3 == 0
    encoder = ColumnTransformer([("flag", OneHotEncoder(sparse_output=False), ["flag"])])
    learned = FRAME.assign(flag=flag.astype(seen))
    model = sqlkrp.model(make_pipeline(encoder, Ridge()).fit(learned, FRAME.id))
    for kind in (bool, int):
        stored = FRAME[["id"]].assign(flag=flag.astype(kind))
        as_frame(spark, stored).createOrReplaceTempView("flags")
        found = rows(db.relation(model, "flags", keep=["id"]))[:, 1]
        assert np.allclose(found, model.predict(learned), rtol=1e-12)
