"""Sparse input: features of a (row, feature, value) table, without ever widening it."""

import duckdb
import numpy as np

import sqlkrp

connection = duckdb.connect()
connection.execute("""
    CREATE TABLE words AS
    SELECT doc, word, 1.0 AS n
    FROM (SELECT range AS doc FROM range(200)), (SELECT 'word ' || range AS word FROM range(500))
    WHERE hash(doc || word) % 40 = 0 AND doc <> 7
""")
connection.execute(
    "CREATE TABLE docs AS SELECT range AS doc, 'title ' || range AS title FROM range(200)"
)

database = sqlkrp.connect(connection)
long = ("doc", "word", "n")
krp = sqlkrp.KRP(degree=2, n_components=300, coef0=0, scaling="unit", random_state=0)
krp.fit(database.source("words", long=long))
database.create(
    krp, "words", into="docs_krp", long=long, rows="docs", keep=["title"], output="array"
)

titles, features = (
    connection.execute("SELECT title, krp FROM docs_krp ORDER BY doc").fetchnumpy().values()
)
features = np.array(features.tolist())
assert features.shape == (200, 300)
assert titles[7] == "title 7"
assert not features[7].any()  # a document without words is a row of zeros, not a missing row

# <f(x), f(y)> estimates the square of the cosine of two documents.
documents = connection.execute("SELECT doc, word FROM words").fetchall()
sets = [{word for doc, word in documents if doc == i} for i in range(200)]
pairs = [(i, j) for i in range(0, 60) for j in range(i, 60) if sets[i] and sets[j]]
exact = np.array([(len(sets[i] & sets[j]) ** 2) / (len(sets[i]) * len(sets[j])) for i, j in pairs])
found = np.array([features[i] @ features[j] for i, j in pairs])
print(f"mean error of the kernel over {len(pairs):,} pairs: {np.abs(found - exact).mean():.3f}")
assert np.abs(found - exact).mean() < 0.08
