"""Proof that the tests find what matters: one place is changed at a time, and a test must fail.

    python tests/mutants.py
    python tests/mutants.py --only 3,17 --jobs 1

Each mutant is one wrong piece of text in a copy of the tree, a mistake that users would see: a
sign, a factor, a quote, a guard, a limit. Its tests are the cheapest that are expected to find it,
out of those that plain ``pytest`` runs. A mutant that survives asks for a test; a place that is
gone asks for another place of the same meaning.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".hypothesis", "__pycache__", ".*_cache")
# A mutant may never end. Its tests take seconds, and those of all, unchanged, a few minutes.
_SECONDS = 900


@dataclass(frozen=True)
class Mutant:
    """A place in a file that is written otherwise, and the tests that are expected to find it."""

    file: str
    old: str
    """What stands there, exactly once in the file."""
    new: str
    why: str
    """What is wrong with it."""
    tests: tuple[str, ...]
    """Files, or ``file::test``."""


@dataclass(frozen=True)
class Run:
    """What the tests said of a copy of the tree."""

    code: int
    said: str
    seconds: float

    @property
    def failed(self) -> str:
        """The id of the test that failed; empty where none did."""
        found = re.search(r"^(?:FAILED|ERROR) (tests/\S+::.*?)(?: - .*)?$", self.said, re.MULTILINE)
        return found[1] if found and self.code == 1 else ""


# --- the places -----------------------------------------------------------------------------------

ESTIMATES = "tests/test_estimates.py::test_estimates_have_the_mean_and_the_variance_of_the_theory"
MUTANTS = [
    # --- stages: the twin, its rounding, its cost
    Mutant(
        "sqlkrp/stages/values.py",
        "difference = first - second",
        "difference = first + second",
        "a butterfly of the twin adds twice, and never subtracts",
        ("tests/test_stages.py::test_butterflies_are_the_hadamard_sums",),
    ),
    Mutant(
        "sqlkrp/stages/values.py",
        "factors[:, 0] += stage.n_inputs * minus",
        "factors[:, 0] += 0 * minus",
        "the twin's terms lose their signs",
        ("tests/test_stages.py::test_sum_of_products_by_hand",),
    ),
    Mutant(
        "sqlkrp/stages/values.py",
        "values += constant",
        "values -= constant",
        "the twin subtracts a constant",
        ("tests/test_every_map.py::test_pca_is_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/stages/values.py",
        "np.where(X >= 0, 1.0, -1.0)",
        "np.where(X > 0, 1.0, -1.0)",
        "the twin's sign of 0 is -1",
        ("tests/test_every_map.py::test_signs_are_packed_in_every_engine",),
    ),
    Mutant(
        "sqlkrp/verification.py",
        "(difference <= rounding)",
        "(difference < 0)",
        "verify takes the rounding of a long sum for a difference",
        ("tests/test_agreement.py::test_verify_does_not_take_rounding_for_a_difference",),
    ),
    Mutant(
        "sqlkrp/stages/meaning.py",
        "np.where(np.abs(X) <= errors, 2.0, 0.0)",
        "np.full_like(X, 2.0)",
        "verify forgives every wrong sign as rounding",
        ("tests/test_every_map.py::test_an_error_of_a_percent_is_found_in_every_map",),
    ),
    Mutant(
        "sqlkrp/stages/meaning.py",
        "count += 2 * int(both.sum())",
        "count += int(both.sum())",
        "a butterfly is counted as one addition",
        ("tests/test_stages.py::test_a_full_block_costs_m_log_m_additions_a_chunk",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        "missing.any(axis=0) & (stage.nulls",
        "missing.all(axis=0) & (stage.nulls",
        "a row with one missing value keeps its features under nulls='propagate'",
        ("tests/test_stages.py::test_missing_values_by_policy",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        'return self.nulls in ("zero", "mean")',
        'return self.nulls == "zero"',
        "missing values are not filled with the mean",
        ("tests/test_stages.py::test_missing_values_by_policy",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        "values -= _of_columns(stage, stage.shift)",
        "values += _of_columns(stage, stage.shift)",
        "the twin shifts to the wrong side",
        ("tests/test_stages.py::test_scaling_is_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        "        if stage.bounds:\n            np.clip(",
        "        if not stage.bounds:\n            np.clip(",
        "the twin does not hold values inside their bounds",
        ("tests/test_defaults.py::test_values_beyond_the_bounds_are_read_as_these",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        "np.where(norm == 0, values, values / np.where(norm == 0, 1, norm))",
        "values / norm",
        "a row of zeros, which has no direction, becomes NaN",
        ("tests/test_stages.py::test_scaling_is_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/stages/prepare.py",
        'wide = values.astype("float64")',
        "wide = values",
        "squares of single numbers leave the range of single precision",
        ("tests/test_every_map.py::test_lengths_of_rows_of_floats_do_not_leave_their_range",),
    ),
    Mutant(
        "sqlkrp/stages/parts.py",
        "arrays = [np.where(array < 0, -1, array + offset)",
        "arrays = [array + offset",
        "beside another stage, a factor that is none becomes an input",
        ("tests/test_stages.py::test_stages_side_by_side_give_what_each_gives",),
    ),
    Mutant(
        "sqlkrp/stages/parts.py",
        'if prepare.unit_length or prepare.nulls == "propagate":',
        "if prepare.unit_length:",
        "a selection forgets that a column it does not use makes a row NULL",
        (
            "tests/test_agreement.py::test_features_of_all_zero_hyperplanes_are_null_in_incomplete_rows",
        ),
    ),
    Mutant(
        "sqlkrp/stages/stage.py",
        "array.max() < limit",
        "array.max() <= limit",
        "a table may name an input that is not there",
        ("tests/test_stages.py::test_tables_that_are_not_consistent_are_our_fault",),
    ),
    Mutant(
        "sqlkrp/stages/records.py",
        "(np.diff(place) > 0).all()",
        "(np.diff(place) >= 0).all()",
        "an entry may be given twice, which the twin reads once and SQL twice",
        ("tests/test_stages.py::test_tables_that_are_not_consistent_are_our_fault",),
    ),
    Mutant(
        "sqlkrp/stages/program.py",
        "        if every_column:",
        "        if not every_column:",
        "printed SQL does not guard columns that no feature needs",
        ("tests/test_planning.py::test_printed_sql_guards_columns_that_nothing_needs_as_well",),
    ),
    # --- draws
    Mutant(
        "sqlkrp/pools.py",
        "uniform[hyperplane, feature] < 0.5 / s",
        "uniform[hyperplane, feature] < 0.55 / s",
        "ternary entries are -1 more often than +1",
        ("tests/test_pools.py::test_achlioptas_entries_have_the_documented_frequencies",),
    ),
    Mutant(
        "sqlkrp/pools.py",
        "fresh = ~np.isin(deck, hand)",
        "fresh = np.ones(n_cards, dtype=bool)",
        "a component may have one hyperplane twice, which biases the kernel",
        ("tests/test_pools.py::test_components_take_distinct_hyperplanes_equally_often",),
    ),
    Mutant(
        "sqlkrp/pools.py",
        "block = slot % n_blocks",
        "block = slot // degree % n_blocks",
        "factors of a term come from one block, and depend on each other",
        ("tests/test_pools.py::test_hadamard_components_keep_the_rules",),
    ),
    Mutant(
        "sqlkrp/maps/krp.py",
        "delayed = math.sqrt(self.terms * self.n_components)",
        "delayed = math.sqrt(self.n_components)",
        "features are sqrt(t) too large",
        ("tests/test_estimates.py::test_the_mean_estimate_is_the_kernel",),
    ),
    Mutant(
        "sqlkrp/maps/krp.py",
        "float(krp._chunks(d))",
        "d / pools.hadamard_block_size(d, krp.block_size)",
        "the variance of a Hadamard pool forgets the padding",
        ("tests/test_estimates.py::test_whole_hadamard_blocks_have_the_kernel_s_constant_exactly",),
    ),
    Mutant(
        "sqlkrp/maps/krp.py",
        "return whole / math.sqrt(pools.chunks_with_constant(n_columns + 1, size))",
        "return whole",
        "a kernel's constant counts once for each chunk",
        (
            "tests/test_estimates.py::test_a_constant_in_each_chunk_varies_no_more_than_the_columns_do",
        ),
    ),
    Mutant(
        "sqlkrp/maps/shared.py",
        "math.sqrt(self.coef0 / self.gamma)",
        "self.coef0 / self.gamma",
        "the constant column is coef0, and not its root",
        (f"{ESTIMATES}[explicit]",),
    ),
    Mutant(
        "sqlkrp/maps/fourier.py",
        "Linear.scaled(k, math.sqrt(2 / k))",
        "Linear.scaled(k, math.sqrt(1 / k))",
        "cosines lose the 2 of sqrt(2/k)",
        ("tests/test_every_map.py::test_fourier_features_are_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/maps/fourier.py",
        "np.float32(math.sqrt(2 * gamma))",
        "np.float32(math.sqrt(gamma))",
        "frequencies of the Gaussian kernel are of half its gamma",
        (f"{ESTIMATES}[fourier]",),
    ),
    Mutant(
        "sqlkrp/maps/fourier.py",
        "[0.0, -math.pi / 2]",
        "[0.0, math.pi]",
        "the sine of a pair is a cosine again",
        (f"{ESTIMATES}[fourier, paired]",),
    ),
    Mutant(
        "sqlkrp/maps/fourier.py",
        "factor = math.sqrt(2 * self.gamma) / size",
        "factor = math.sqrt(2 * self.gamma / size)",
        "three Hadamard matrices are taken for one",
        ("tests/test_estimates.py::test_structured_frequencies_are_nearly_unbiased",),
    ),
    Mutant(
        "sqlkrp/maps/linear.py",
        "-directions @ mean",
        "directions @ mean",
        "principal components are moved away from the middle",
        ("tests/test_every_map.py::test_pca_is_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/maps/complex_products.py",
        "one.sum(axis=1) // 2 % 2, -1, 1",
        "one.sum(axis=1) % 2, -1, 1",
        "i times i is +1 in a complex product",
        ("tests/test_every_map.py::test_bucket_sketches_are_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/maps/polynomial.py",
        "series[degrees] / (chances[degrees] * k)",
        "series[degrees] / k",
        "a monomial that is seldom drawn does not count for more",
        (f"{ESTIMATES}[maclaurin]",),
    ),
    Mutant(
        "sqlkrp/maps/monomials.py",
        "orders * (place + 1) / run, orders",
        "orders * (place + 1), orders",
        "the square of a column counts as the product of two columns",
        ("tests/test_monomials.py::test_weights_by_hand",),
    ),
    Mutant(
        "sqlkrp/maps/monomials.py",
        "alike[name.casefold()] == 1 and",
        "alike[name.casefold()] and",
        "two features have the same name, or names that differ only in case",
        ("tests/test_monomials.py::test_what_has_no_clear_name_is_numbered",),
    ),
    Mutant(
        "sqlkrp/maps/landmarks.py",
        "vectors[:, there] / np.sqrt(values[there])",
        "vectors[:, there] / values[there]",
        "Nystroem takes the inverse, and not its root",
        ("tests/test_every_map.py::test_nystroem_is_scikit_learn_s",),
    ),
    Mutant(
        "sqlkrp/maps/landmarks.py",
        "math.sqrt(p * (p - 1) / (t * (p - t)))",
        "math.sqrt((p - 1) / t)",
        "directions from landmarks are a share t/p too short, as in the paper",
        ("tests/test_estimates.py::test_directions_from_landmarks_are_independent_and_centred",),
    ),
    Mutant(
        "sqlkrp/maps/rank_one.py",
        "np.stack([a - b, a + b], axis=1)",
        "np.stack([a - b, a - b], axis=1)",
        "a difference of two squares becomes one square",
        (f"{ESTIMATES}[rank one]",),
    ),
    Mutant(
        "sqlkrp/maps/rank_one.py",
        "math.pi / (4 * len(names) * factor)",
        "math.pi / (2 * len(names) * factor)",
        "scores of packed signs are twice as large",
        ("tests/test_every_map.py::test_scores_of_numbers_against_bits",),
    ),
    Mutant(
        "sqlkrp/maps/combined.py",
        "shift = -mean * factor",
        "shift = -mean",
        "a feature of a chain is shifted before it is scaled",
        ("tests/test_estimates.py::test_a_scaled_chain_is_scikit_learn_s_scaler",),
    ),
    Mutant(
        "sqlkrp/maps/combined.py",
        "members = [self.map.draw(inputs, rng) for _ in range(self.n_members)]",
        "members = [self.map.draw(inputs, rng)] * self.n_members",
        "all members of an ensemble are one draw",
        ("tests/test_every_map.py::test_members_of_an_ensemble_are_draws_of_their_own",),
    ),
    # --- what a fit decides
    Mutant(
        "sqlkrp/maps/automatic.py",
        "_ALIKE_COLUMNS, _ALIKE_SHARE = 0.9, 0.25",
        "_ALIKE_COLUMNS, _ALIKE_SHARE = 0.9, 0.00025",
        "ages and incomes are taken for columns of one unit",
        (
            "tests/test_defaults.py"
            "::test_a_table_is_standardised_if_its_columns_are_of_different_units",
        ),
    ),
    Mutant(
        "sqlkrp/maps/automatic.py",
        "np.sum(deviation**power)",
        "np.sum(deviation)",
        "gamma='auto' adds up deviations, and not variances",
        ("tests/test_defaults.py::test_gamma_is_one_over_the_total_variance_of_prepared_columns",),
    ),
    Mutant(
        "sqlkrp/maps/columns.py",
        "    if not source.is_sparse:\n        return [label]",
        "    if not source.is_sparse:\n        return []",
        "the label is read as a feature",
        ("tests/test_defaults.py::test_the_label_is_no_feature_and_is_kept",),
    ),
    Mutant(
        "sqlkrp/maps/preparing.py",
        "np.where(plain, 0.0, moments.mean)",
        "moments.mean",
        "columns of 0 and 1 are shifted",
        ("tests/test_defaults.py::test_columns_of_0_and_1_are_left_as_they_are",),
    ),
    Mutant(
        "sqlkrp/maps/allowed.py",
        " or (self.above and value == self.at_least)",
        "",
        "a number that must be more than 0 may be 0",
        ("tests/test_parameters.py::test_what_may_be_and_what_may_not",),
    ),
    Mutant(
        "sqlkrp/maps/parameters.py",
        "            part.check_parameters()\n",
        "            part.check()\n",
        "parameters of a map inside a map are not checked",
        ("tests/test_parameters.py::test_a_declaration_is_a_check_at_fit",),
    ),
    Mutant(
        "sqlkrp/maps/allowed.py",
        "int(value) > self.at_most:",
        "int(value) >= self.at_most:",
        "the largest number that is allowed is refused",
        ("tests/test_parameters.py::test_what_may_be_and_what_may_not",),
    ),
    # --- names, numbers and sums in SQL
    Mutant(
        "sqlkrp/sql/names.py",
        "_escaped(name, dialect.name_escapes)",
        "name",
        "a quote in a column's name ends the name",
        ("tests/test_sql.py::test_a_relation_has_the_columns_names_as_they_are",),
    ),
    Mutant(
        "sqlkrp/sql/names.py",
        "_escaped(value, dialect.text_escapes)",
        "value",
        "a quote in a column's name ends the text of an error in SQL",
        ("tests/test_sql.py::test_a_relation_has_the_columns_names_as_they_are",),
    ),
    Mutant(
        "sqlkrp/sql/names.py",
        'digits if "e" in digits else digits + "e0"',
        "digits",
        "a number is a DECIMAL in DuckDB, which rounds what is computed from it",
        ("tests/test_sql.py::test_number_literals_are_exact_doubles",),
    ),
    Mutant(
        "sqlkrp/sql/names.py",
        "key = _folded(name) if dialect.ignores_case else name",
        "key = name",
        "two columns that differ in case only are one in the engine",
        ("tests/test_sql.py::test_case_twins_are_refused_where_case_is_ignored",),
    ),
    Mutant(
        "sqlkrp/sql/names.py",
        "(len(name.encode()), dialect.max_identifier_bytes",
        "(len(name), dialect.max_identifier_bytes",
        "a name of many bytes is cut by the engine without a word",
        ("tests/test_dialects.py::test_names_that_an_engine_would_cut_are_refused",),
    ),
    Mutant(
        "sqlkrp/sql/names.py",
        "    while len(terms) > _BLOCK:",
        "    while len(terms) > 100_000 * _BLOCK:",
        "a long sum is nested as deeply as it is long",
        ("tests/test_sql.py::test_a_hundred_thousand_terms_stay_shallow",),
    ),
    # --- the wide form
    Mutant(
        "sqlkrp/sql/wide_shared.py",
        "{'+' if second > 0 else '-'}",
        "+",
        "a layer of shared sums adds what it should subtract",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/levels.py",
        "({balanced(plus, ' + ')}) - ({balanced(minus, ' + ')})",
        "({balanced(plus, ' + ')}) - {balanced(minus, ' + ')}",
        "of what is subtracted, only the first is",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/wide_inputs.py",
        'if stage.nulls == "error" and not levels.job.guard:',
        'if stage.nulls == "error":',
        "printed SQL does not stop at a missing value",
        ("tests/test_engines.py::test_printed_sql_stops_at_a_missing_value",),
    ),
    Mutant(
        "sqlkrp/sql/levels.py",
        " WHEN {value} > {high} THEN {high}",
        "",
        "values are held above their least, and not below their most",
        ("tests/test_defaults.py::test_values_beyond_the_bounds_are_read_as_these",),
    ),
    Mutant(
        "sqlkrp/sql/wide_inputs.py",
        "{balanced(finite, ' AND ')}",
        "{balanced(finite, ' OR ')}",
        "a row is complete if one of its values is there",
        ("tests/test_agreement.py::test_policies_and_scalings_agree",),
    ),
    Mutant(
        "sqlkrp/sql/levels.py",
        "return self.if_complete(self.literal(constant))",
        "return self.literal(constant)",
        "a feature of nothing is 0 in rows that have no features",
        (
            "tests/test_agreement.py"
            "::test_features_of_all_zero_hyperplanes_are_null_in_incomplete_rows",
        ),
    ),
    Mutant(
        "sqlkrp/sql/levels.py",
        "self.dialect.item(array, i)",
        "self.dialect.item(array, len(packed) - 1 - i)",
        "what goes on in an array is read back in another order",
        ("tests/test_dialects.py::test_what_does_not_fit_a_select_goes_on_in_an_array",),
    ),
    Mutant(
        "sqlkrp/sql/wide_inputs.py",
        "CASE WHEN length = 0 THEN {value}",
        "CASE WHEN length < 0 THEN {value}",
        "a row of zeros is divided by its length",
        ("tests/test_engines.py::test_every_stage_agrees_whatever_is_missing",),
    ),
    # --- the tables form
    Mutant(
        "sqlkrp/sql/tables.py",
        "THEN inputs.value ELSE -inputs.value END",
        "THEN inputs.value ELSE inputs.value END",
        "joined signs only add",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/tables.py",
        'f"COALESCE({factor}, 1)"',
        "factor",
        "a product of fewer factors than others is NULL",
        ("tests/test_engines.py::test_every_stage_agrees_whatever_is_missing",),
    ),
    Mutant(
        "sqlkrp/sql/tables.py",
        'f"_{again + 1}" if again else ""',
        '""',
        "the tables of two stages have one name",
        ("tests/test_every_map.py::test_every_map_equals_numpy",),
    ),
    Mutant(
        "sqlkrp/sql/tables.py",
        "fill_absent=not knows",
        "fill_absent=False",
        "entries that are absent are no zeros for a map without a projection",
        ("tests/test_every_map.py::test_missing_values_and_sparse_rows",),
    ),
    Mutant(
        "sqlkrp/sql/chain.py",
        "{self.dialect.materialized if self.reads[name] > 1 else 'AS'}",
        "{'AS'}",
        "rows that are numbered twice may get two numbers",
        ("tests/test_sql.py::test_the_tables_form_sums_and_multiplies_in_windows",),
    ),
    Mutant(
        "sqlkrp/sql/chain.py",
        "while quote(name, self.dialect) in taken:",
        "while not taken:",
        "a step hides the user's table of the same name",
        ("tests/test_agreement.py::test_tables_named_like_the_steps_of_a_statement",),
    ),
    Mutant(
        "sqlkrp/sql/entries.py",
        "    if np.any(prepare.shift != 0):",
        "    if np.all(prepare.shift > 1e300):",
        "sparse rows are shifted where they have an entry only",
        ("tests/test_agreement.py::test_sparse_input_that_cannot_be_right_is_refused",),
    ),
    Mutant(
        "sql_templates/linear.sql",
        "  UNION ALL\n  SELECT complete.row_id, pool.hyperplane, $constant AS value\n"
        "  FROM complete\n  CROSS JOIN pool\n",
        "  UNION ALL\n  SELECT complete.row_id, pool.hyperplane, $constant AS value\n"
        "  FROM complete\n  JOIN pool ON pool.hyperplane < 0\n",
        "a sum of nothing is no row",
        ("tests/test_agreement.py::test_a_pool_of_all_zero_hyperplanes_gives_zeros",),
    ),
    Mutant(
        "sql_templates/collect.sql",
        "LEFT JOIN collected",
        "JOIN collected",
        "rows without features are left out of the answer",
        ("tests/test_agreement.py::test_policies_and_scalings_agree",),
    ),
    Mutant(
        "sql_templates/collect.sql",
        "ORDER BY $place ASC",
        "ORDER BY $place DESC",
        "rows come out in another order",
        ("tests/test_agreement.py::test_rows_keep_their_order",),
    ),
    Mutant(
        "sql_templates/sum_of_products.sql",
        "ELSE -product END",
        "ELSE product END",
        "terms lose their signs",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sql_templates/distances.sql",
        "LEFT JOIN inputs ON",
        "JOIN inputs ON",
        "an absent entry is no coordinate of a distance",
        ("tests/test_every_map.py::test_missing_values_and_sparse_rows",),
    ),
    Mutant(
        "sql_templates/prepare.sql",
        "ELSE $missing END - columns.shift)\n    * columns.scale",
        "ELSE $missing END * columns.scale\n    - columns.shift)",
        "columns are scaled before they are shifted",
        ("tests/test_agreement.py::test_policies_and_scalings_agree",),
    ),
    Mutant(
        "sql_templates/unit_length.sql",
        "CASE WHEN lengths.length = 0 THEN",
        "CASE WHEN lengths.length < 0 THEN",
        "a row of zeros is divided by its length",
        ("tests/test_engines.py::test_every_stage_agrees_whatever_is_missing",),
    ),
    Mutant(
        "sqlkrp/sql/entries.py",
        "size = how.at_most or len(inputs)",
        "size = len(inputs)",
        "each entry of a wide table is looked for among all columns, which takes long",
        ("tests/test_sqlite.py::test_the_tables_form_reads_wide_tables_in_few_parts",),
    ),
    # --- outputs
    Mutant(
        "sqlkrp/sql/packing.py",
        "place=i % BITS",
        "place=BITS - 1 - i % BITS",
        "scores read bits from the highest",
        ("tests/test_every_map.py::test_scores_of_numbers_against_bits",),
    ),
    Mutant(
        "sqlkrp/sql/packing.py",
        "str(1 - 2**place)",
        "str(2**place - 1)",
        "the 64th bit is the largest number, and not the sign",
        ("tests/test_every_map.py::test_signs_are_packed_in_every_engine",),
    ),
    Mutant(
        "sqlkrp/sql/vectors.py",
        "dialect.array_when.format(test=self.there, array=array) if self.there else array",
        "array",
        "a row without features has an array of NULLs",
        ("tests/test_agreement.py::test_policies_and_scalings_agree",),
    ),
    # --- planning, limits, statements
    Mutant(
        "sqlkrp/sql/sharing.py",
        "second = np.where(a == 0, 0, b * sign)",
        "second = np.where(a == 0, 0, b)",
        "a shared sum of which the first is negative has a wrong sign",
        ("tests/test_planning.py::test_any_table_of_signs_is_the_same_shared_or_not",),
    ),
    Mutant(
        "sqlkrp/sql/planning.py",
        "way.seconds < best.seconds:",
        "way.seconds > best.seconds:",
        "the planner takes the dearest way",
        ("tests/test_planning.py::test_auto_takes_what_costs_least_and_has_room",),
    ),
    Mutant(
        "sqlkrp/sql/planning.py",
        "signs = stage.sign * of_factor[stage.factors].prod(axis=2)",
        "signs = stage.sign",
        "products lose the signs of the sums that they are of",
        ("tests/test_planning.py::test_signs_of_sums_are_those_of_products",),
    ),
    Mutant(
        "sqlkrp/sql/planning.py",
        "limit - n_kept - 1",
        "limit - 1",
        "columns that are kept have no room in a SELECT",
        ("tests/test_planning.py::test_columns_that_are_kept_need_room_too",),
    ),
    Mutant(
        "sqlkrp/sql/preflight.py",
        "row = 24 + number_bytes * n_features",
        "row = number_bytes * n_features",
        "a row of a table is measured without its header",
        ("tests/test_dialects.py::test_a_table_of_too_many_or_too_long_columns_is_foreseen",),
    ),
    Mutant(
        "sqlkrp/sql/preflight.py",
        "depth + 6 * (nested - 1)",
        "depth + nested - 1",
        "SQLite's parser stack is not foreseen",
        ("tests/test_sqlite.py::test_the_parser_s_stack_is_foreseen",),
    ),
    Mutant(
        "sqlkrp/sql/statement.py",
        "        if statement.too_large is None:\n            return statement\n",
        "        return statement\n",
        "form='auto' does not fall back to the tables where wide is too large",
        ("tests/test_dialects.py::test_auto_takes_the_tables_where_wide_is_too_much",),
    ),
    Mutant(
        "sqlkrp/sql/arrays.py",
        "found = np.where(sign < 0, found + self.count, found)",
        "found = np.where(sign < 0, found, found)",
        "loops lose the signs of a hyperplane",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "loops.places(other, absent=ONE)",
        "loops.places(other)",
        "in loops a term with fewer factors is 0",
        ("tests/test_engines.py::test_every_stage_agrees_whatever_is_missing",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "0 THEN {plus} ELSE {minus} END",
        "0 THEN {plus} ELSE {plus} END",
        "butterflies in loops only add",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "np.insert(place, empty, ZERO)",
        "np.insert(place, empty, ONE)",
        "in loops a hyperplane without entries is 1",
        ("tests/test_agreement.py::test_a_pool_of_all_zero_hyperplanes_gives_zeros",),
    ),
    Mutant(
        "sqlkrp/sql/arrays.py",
        "Vector(map(levels.if_complete, items)",
        "Vector(items",
        "in loops a row that misses a value has features",
        ("tests/test_engines.py::test_every_stage_agrees_whatever_is_missing",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        'f"CASE WHEN {value} < {least} THEN {least} WHEN {value} > {most} THEN {most} "',
        'f"CASE WHEN {value} < {least} THEN {least} WHEN {value} > {most} THEN {value} "',
        "in loops outliers are not held from above",
        ("tests/test_defaults.py::test_values_beyond_the_bounds_are_read_as_these",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        'value = f"({value} - {loops.number_of(_of_all(stage, stage.shift, 0.0))})"',
        'value = f"({value} - {loops.number_of(_of_all(stage, stage.shift, 1.0))})"',
        "in loops the constant is shifted",
        ("tests/test_engines.py",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "_of_all(stage, stage.fill, 0.0)",
        "_of_all(stage, 0 * stage.fill, 0.0)",
        "in loops a missing value is read as 0 whatever the policy",
        ("tests/test_engines.py",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "factors.append(loops.number_of(signs))",
        "factors.append(loops.number_of(abs(signs)))",
        "in loops products lose their signs",
        ("tests/test_agreement.py::test_both_forms_equal_numpy_on_dyadic_data",),
    ),
    Mutant(
        "sqlkrp/sql/loops.py",
        "length = 0 OR i = {stage.n_inputs}",
        "length = 0 OR i = 0",
        "in loops the constant is divided by a row's length",
        ("tests/test_engines.py",),
    ),
    Mutant(
        "sqlkrp/sql/facts.py",
        "        if self.executed == ITSELF:",
        "        if self.executed != ITSELF:",
        "a statement that was never executed anywhere does not say so",
        ("tests/test_dialects.py::test_what_is_only_generated_says_so_first",),
    ),
    Mutant(
        "sqlkrp/sql/options.py",
        "        if self.long is not None and self.rows is None and kept:",
        "        if self.long is not None and self.rows is None and not kept:",
        "columns to keep of sparse rows are asked for where there are none",
        ("tests/test_options.py::test_a_wrong_option_is_told_in_one_line_wherever_it_is_given",),
    ),
    # --- map files
    Mutant(
        "sqlkrp/mapfile.py",
        "    if checksum != _sha256(document):",
        "    if checksum is None:",
        "a map file that was changed is read as it is",
        ("tests/test_mapfile.py::test_edited_maps_are_refused",),
    ),
    Mutant(
        "sqlkrp/mapfile.py",
        '"names": list(program.names),',
        "",
        "the names of features are not in the file, nor in the digest",
        ("tests/test_mapfile.py::test_a_loaded_map_is_the_same_map",),
    ),
    Mutant(
        "sqlkrp/mapfile.py",
        "    if not same:\n",
        "    if same is None:\n",
        "a forged map is taken for the one of its digest",
        ("tests/test_mapfile.py::test_one_flipped_sign_is_refused",),
    ),
    Mutant(
        "sqlkrp/mapfile.py",
        "    if size > _MAX_ARRAY_BYTES:",
        "    if size > 1 << 80:",
        "an array that claims a terabyte is believed",
        ("tests/test_mapfile.py::test_forged_maps_are_refused_in_one_line",),
    ),
    Mutant(
        "sqlkrp/mapfile.py",
        "    if version > FORMAT_VERSION:",
        "    if version > FORMAT_VERSION + 1:",
        "a map of a later version is read as if it were of this one",
        ("tests/test_mapfile.py::test_forged_maps_are_refused_in_one_line",),
    ),
    Mutant(
        "sqlkrp/mapfile.py",
        "_STATISTICS = 1e-6",
        "_STATISTICS = 1e-3",
        "a map of other statistics is taken for the same",
        ("tests/test_mapfile.py::test_maps_are_the_same_but_for_the_last_bits_of_statistics",),
    ),
    # --- files
    Mutant(
        "sqlkrp/files.py",
        "    if not replace:\n        require_free(target)\n",
        "",
        "a whole export is computed before it says that the file is there",
        ("tests/test_mapfile.py::test_a_file_that_is_there_first_stays",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "        os.link(part, target)",
        "        os.replace(part, target)",
        "a file that somebody wrote meanwhile is lost",
        ("tests/test_mapfile.py::test_a_file_that_is_there_first_stays",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "    _remove_dead_of(target)\n    with reserve",
        "    with reserve",
        "what a killed run left behind stays for ever",
        ("tests/test_kill.py::test_kill_9_during_an_export",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "    finally:\n        _remove(path)\n",
        "    finally:\n",
        "what was half written stays after an error",
        ("tests/test_contract.py::test_a_failure_leaves_nothing_behind",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "    if foreign:\n",
        "    if foreign and not replace:\n",
        "a folder with somebody else's files is replaced",
        ("tests/test_cli.py::test_tables_are_the_map_s_and_replace_only_their_own",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "any(target.samefile(one) for one in there)",
        "str(target) in there",
        "a file is written over under another name of it while it is read",
        ("tests/test_cli.py::test_an_export_does_not_replace_the_database_it_reads",),
    ),
    Mutant(
        "sqlkrp/keeping.py",
        "    if not same_map(found.content(), drawn.content()):",
        "    if found.program is drawn.program:",
        "another map in the file is used for the one that was drawn",
        ("tests/test_cli.py::test_a_map_that_a_model_may_need_is_not_replaced_in_passing",),
    ),
    Mutant(
        "sqlkrp/files.py",
        "                os.replace(part, target)\n            else:",
        "                target.write_bytes(part.read_bytes())\n            else:",
        "a file that is replaced is half written for whoever reads it",
        ("tests/test_mapfile.py::test_a_file_that_is_replaced_is_whole_at_any_time",),
    ),
    # --- distortion
    Mutant(
        "sqlkrp/sql/pairs.py",
        "(found - 2 * v) / (lengths - 2 * k) - 1 END",
        "(found - v) / (lengths - 2 * k) - 1 END",
        "a distance in SQL lacks an inner product",
        ("tests/test_distortion.py::test_an_exact_map_has_no_distortion",),
    ),
    Mutant(
        "sqlkrp/sql/pairs.py",
        "SELECT i, j, SUM(v) AS v FROM (",
        "SELECT i, j, MAX(v) AS v FROM (",
        "of features in several tables only one table counts",
        ("tests/test_distortion.py::test_many_features_are_added_up_in_parts",),
    ),
    Mutant(
        "sqlkrp/sql/pairs.py",
        'twice = "CASE WHEN i = j THEN 1 ELSE 2 END"',
        'twice = "1"',
        "half of a matrix is taken for all of it",
        ("tests/test_distortion.py::test_an_engine_finds_what_numpy_does",),
    ),
    Mutant(
        "sqlkrp/maps/kernels.py",
        "Linear.scaled(1, -1 / a**2, 1.0)",
        "Linear.scaled(1, -1 / a, 1.0)",
        "a map is held against another kernel than its own",
        ("tests/test_distortion.py::test_maps_that_are_nearly_unbiased_are_near_what_they_claim",),
    ),
    Mutant(
        "sqlkrp/maps/variances.py",
        "degree**2 / hyperplanes - degree / (terms * components)",
        "degree**2 / hyperplanes",
        "what components share is counted twice",
        ("tests/test_distortion.py::test_what_theory_predicts_is_measured",),
    ),
    # --- reports
    Mutant(
        "sqlkrp/report/text.py",
        "return value if isinstance(value, Html) else Html(escape(shortened(value, 2000)))",
        "return value if isinstance(value, Html) else Html(shortened(value, 2000))",
        "names of the user's are part of a page",
        ("tests/test_report.py::test_hostile_names_are_texts",),
    ),
    Mutant(
        "sqlkrp/report/drawing.py",
        '"text.parse_math": False',
        '"text.parse_math": True',
        "a name with a $ is a formula in a chart",
        ("tests/test_report.py::test_hostile_names_are_texts_of_charts",),
    ),
    Mutant(
        "sqlkrp/report/drawing.py",
        """(r'\\bid="', f'id="{name}-')""",
        """(r'\\bid="', 'id="')""",
        "one chart is clipped as another one is",
        ("tests/test_report.py::test_a_regression_is_held_against_its_label",),
    ),
    Mutant(
        "sqlkrp/sql/cells.py",
        "CASE WHEN {is_first} THEN 2 * b ELSE 2 * d END AS h",
        "CASE WHEN {is_first} THEN 2 * b ELSE 2 * b END AS h",
        "half of the hexagons lie upon each other",
        ("tests/test_report.py::test_pairs_are_counted_as_in_numpy",),
    ),
    Mutant(
        "sqlkrp/report/said_classes.py",
        "confusion[row, column] += count",
        "confusion[column, row] += count",
        "what is said and what is so are exchanged",
        ("tests/test_report.py::test_a_classifier_is_held_against_its_label",),
    ),
    # --- verification and the command line
    Mutant(
        "sqlkrp/verification.py",
        '{"float64": 1e-9, "float32": 1e-3}',
        '{"float64": 1e-1, "float32": 1e-1}',
        "verify finds an error of two percent small",
        ("tests/test_every_map.py::test_an_error_of_a_percent_is_found_in_every_map",),
    ),
    Mutant(
        "sqlkrp/verification.py",
        "return self.rows > 0 and not self.wrong",
        "return not self.wrong",
        "a comparison of no rows is a success",
        ("tests/test_cli.py::test_verify_of_no_rows_says_so_and_fails",),
    ),
    Mutant(
        "sqlkrp/verification.py",
        "np.where(np.isnan(difference), np.inf, difference)",
        "np.where(np.isnan(difference), 0.0, difference)",
        "verify takes NULL in place of a number for right",
        ("tests/test_every_map.py::test_verify_takes_no_null_for_a_number_nor_a_number_for_null",),
    ),
    Mutant(
        "sqlkrp/verification.py",
        "return max(len(self.missing), self.source_rows - self.rows)",
        "return len(self.missing)",
        "verify takes a result for whole that lacks a row beside the sample",
        ("tests/test_verify_result.py::test_a_row_of_the_source_that_the_result_lacks_is_a_fault",),
    ),
    Mutant(
        "sqlkrp/engines/stored.py",
        "values[[places[one] for one in stored.keys]]",
        "values",
        "verify compares the stored rows in the order in which they come",
        ("tests/test_verify_result.py::test_a_shuffled_result_is_no_fault",),
    ),
    Mutant(
        "sqlkrp/engines/results.py",
        "codes.get(meant(value), math.inf)",
        "codes.get(meant(value), 0)",
        "verify takes a stored label that is no class for the first class",
        ("tests/test_verify_result.py::test_a_label_that_is_no_class_is_wrong",),
    ),
    Mutant(
        "sqlkrp/engines/stored.py",
        "wanted, values = set(part), []",
        "wanted, values = set(drawn), []",
        "verify takes keys of other parts of its sample for keys that are there twice",
        (
            "tests/test_verify_result.py::test_large_numbers_are_told_apart_though_they_are_one_double",
        ),
    ),
    Mutant(
        "sqlkrp/cli/commands/verify.py",
        "return 0 if result.ok else 1",
        "return 0",
        "sqlkrp verify exits with 0 whatever it found",
        ("tests/test_cli.py::test_verify_exits_1_when_the_engine_is_wrong",),
    ),
    Mutant(
        "sqlkrp/cli/commands/featurize.py",
        "require_new(path, given.replace or given.replace_map)",
        "pass",
        "featurize works for long before it says that the map's file is there",
        ("tests/test_cli.py::test_featurize_does_not_overwrite_before_or_after_the_work",),
    ),
    Mutant(
        "sqlkrp/cli/commands/featurize.py",
        "        kept = kept_map(Path(path), fitted)\n",
        "        require_new(path, False)\n",
        "a map that is there and is the one drawn is in the way",
        ("tests/test_cli.py::test_a_map_that_a_model_may_need_is_not_replaced_in_passing",),
    ),
    Mutant(
        "sqlkrp/spelling.py",
        '        rf"(?<!\\w)(?:{_TEXT})"\n        rf"|(?<![\\w.])',
        '        rf"(?<![\\w.])',
        "a column named like a parameter is spelt as an option",
        ("tests/test_house.py::test_doctests",),
    ),
    Mutant(
        "sqlkrp/cli/destinations.py",
        "if not replace and isinstance(target, Path) and",
        "if isinstance(target, Path) and",
        "--replace does not replace a file",
        ("tests/test_cli.py::test_featurize_does_not_overwrite_before_or_after_the_work",),
    ),
    # --- engines
    Mutant(
        "sqlkrp/engines/duckdb_running.py",
        "                    self.connection.rollback()\n                raise\n",
        "                    self.connection.commit()\n                raise\n",
        "a table that was made when somebody pressed Ctrl-C is there",
        ("tests/test_contract.py::test_a_stop_when_the_table_is_made_leaves_nothing",),
    ),
    Mutant(
        "sqlkrp/engines/sqlite.py",
        'else ("BEGIN IMMEDIATE" if keep else "BEGIN", "COMMIT", "ROLLBACK")',
        'else ("BEGIN IMMEDIATE" if keep else "BEGIN", "COMMIT", "COMMIT")',
        "a table that was to be replaced is gone after a failure",
        ("tests/test_contract.py::test_a_failure_leaves_what_was_to_be_replaced",),
    ),
    Mutant(
        "sqlkrp/engines/session.py",
        "                drops.callback(self.drop_temporary, name)\n",
        "",
        "side tables stay in the user's connection",
        ("tests/test_contract.py::test_create_makes_a_table_and_nothing_else",),
    ),
    Mutant(
        "sqlkrp/engines/asking.py",
        "guard=any_rows or not (run_now and session.can.transactions)",
        "guard=any_rows or not session.can.transactions",
        "a view does not stop at a missing value",
        ("tests/test_contract.py::test_a_view_computes_when_it_is_read_and_guards_itself",),
    ),
    Mutant(
        "sqlkrp/engines/asking.py",
        "guard=any_rows or not (run_now and session.can.transactions)",
        "guard=any_rows or not run_now",
        "without transactions nothing stops at a value that went missing meanwhile",
        ("tests/test_capabilities.py::test_an_engine_of_single_statements_creates_and_exports",),
    ),
    Mutant(
        "sqlkrp/engines/targets.py",
        "if read == target or target[0][-1].lower() in below:",
        "if read == target:",
        "a table is replaced by the features of a view of it",
        ("tests/test_contract.py::test_create_does_not_overwrite_what_it_reads",),
    ),
    Mutant(
        "sqlkrp/engines/database.py",
        "for source in (named, options.rows, *self._session.files()):",
        "for source in (named, options.rows):",
        "an export replaces the database that it reads",
        ("tests/test_cli.py::test_an_export_does_not_replace_the_database_it_reads",),
    ),
    Mutant(
        "sqlkrp/engines/creating.py",
        "        if not session.can.transactions and target.found is None:",
        "        if session.can.transactions and target.found is None:",
        "without transactions a table that could not be finished stays",
        (
            "tests/test_capabilities.py"
            "::test_without_transactions_what_was_made_is_dropped_when_a_later_step_fails",
        ),
    ),
    Mutant(
        "sqlkrp/engines/database.py",
        "        self._kept.close()\n",
        "",
        "side tables of a relation stay when the database is closed",
        ("tests/test_duckdb.py::test_side_tables_of_a_relation_go_when_the_database_is_closed",),
    ),
    Mutant(
        "sqlkrp/engines/checks.py",
        "missing += [int(total - count) for count in whole]",
        "missing += [int(count) for count in whole]",
        "the values that are there are counted as missing",
        ("tests/test_contract.py::test_missing_values_are_named_and_nothing_is_made",),
    ),
    Mutant(
        "sqlkrp/engines/checks.py",
        'if prepare.nulls == "error" and complete < rows:',
        'if prepare.nulls == "error" and not complete:',
        "rows with a missing value are computed if another row has none",
        ("tests/test_contract.py::test_missing_values_are_named_and_nothing_is_made",),
    ),
    Mutant(
        "sqlkrp/engines/checks.py",
        "pairs, filled=prepare.fills)",
        "pairs, filled=False)",
        "a missing value that is filled hides the largest number of its row",
        ("tests/test_postgres.py::test_what_is_missing_does_not_hide_the_largest_number",),
    ),
    Mutant(
        "sqlkrp/engines/samples.py",
        "np.nan if value is None else value",
        "0.0 if value is None else value",
        "verify reads a missing entry as 0",
        ("tests/test_engines.py::test_missing_entries_are_not_absent_ones",),
    ),
    Mutant(
        "sqlkrp/engines/sources.py",
        "std=np.sqrt((squares + absent * mean**2) / max(n_rows, 1))",
        "std=np.sqrt(squares / max(n_rows, 1))",
        "absent entries of sparse rows do not count for the deviation",
        ("tests/test_defaults.py::test_sparse_rows_have_the_gamma_of_the_same_rows_in_full",),
    ),
    Mutant(
        "sqlkrp/engines/sources.py",
        "        if session is not self.session:\n",
        "        if session is None:\n",
        "a table of one database is read by its name in another",
        ("tests/test_looks.py::test_a_source_is_handed_on_only_to_what_it_is_of",),
    ),
    Mutant(
        "sqlkrp/engines/statistics.py",
        "deviation = size * np.sqrt(square)",
        "deviation = np.sqrt(square)",
        "deviations are shares of a column's size",
        ("tests/test_defaults.py::test_every_source_has_the_same_statistics",),
    ),
    Mutant(
        "sqlkrp/engines/duckdb.py",
        "sample_size = -1",
        "sample_size = 20480",
        "a fraction far down in a CSV is rounded, or refused",
        ("tests/test_cli.py::test_numbers_of_a_csv_are_read_as_they_stand",),
    ),
    Mutant(
        "sqlkrp/engines/duckdb.py",
        'name = re.sub(r"[\\[*?]", r"[\\g<0>]", name)',
        "name = str(path)",
        "a file whose name has brackets is read as a pattern",
        ("tests/test_duckdb.py::test_a_file_name_with_brackets_is_that_file",),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        '"\\t": "\\\\t", ',
        "",
        "a tab in a column's name is the end of a field of COPY",
        ("tests/test_engines.py::test_hostile_names_are_columns_as_any",),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        "self._ask_for(dict(zip(_SETTINGS, before, strict=True)))",
        'self._ask_for({"jit": "off"})',
        "settings are not put back in the user's transaction",
        ("tests/test_postgres.py::test_inside_the_user_s_transaction_it_is_the_user_s_to_end",),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        'if own and level.startswith("read"):',
        "if not level:",
        "rows that another writes after the check are in the table unchecked",
        ("tests/test_postgres.py::test_what_is_checked_is_what_is_written",),
    ),
    Mutant(
        "sqlkrp/engines/sqlite.py",
        "count += len(rows)",
        "count = len(rows)",
        "of the rows of an export only the last thousand are counted",
        ("tests/test_sqlite.py::test_rows_that_are_fetched_in_parts_are_all_written_and_counted",),
    ),
    Mutant(
        "sqlkrp/urls.py",
        '_PASSWORD.sub(r"\\1...", told)',
        "told",
        "a message repeats the password of what is no database",
        ("tests/test_cli.py::test_no_message_repeats_a_password",),
    ),
    Mutant(
        "sqlkrp/engines/sqlite.py",
        '"ROLLBACK TO sqlkrp; RELEASE sqlkrp"',
        '"ROLLBACK"',
        "what fails ends the user's own transaction",
        ("tests/test_sqlite.py::test_inside_the_user_s_transaction_it_is_the_user_s_to_end",),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        'self._run(f"DROP {kind} IF EXISTS {full}", what)',
        'self._run(f"DROP {kind} IF EXISTS {full} CASCADE", what)',
        "views of a table go with it when it is replaced",
        ("tests/test_postgres.py::test_what_others_depend_on_is_not_replaced",),
    ),
    Mutant(
        "sqlkrp/sql/dialects.py",
        "CASE WHEN TYPEOF({value}) IN ('integer', 'real') THEN CAST({value} AS {type}) END",
        "CAST({value} AS {type})",
        "a text in a column of numbers is 0 in SQLite",
        ("tests/test_sqlite.py::test_a_text_in_a_column_of_numbers_is_missing_and_not_zero",),
    ),
    Mutant(
        "sqlkrp/sql/dialects.py",
        "row_bytes=8160",
        "row_bytes=8192",
        "Postgres refuses a table after the work",
        ("tests/test_dialects.py::test_a_table_of_too_many_or_too_long_columns_is_foreseen",),
    ),
    # --- models ---------------------------------------------------------------------------------
    Mutant(
        "sqlkrp/stages/closing.py",
        "off = np.maximum(sigmoid(X + far) - values, values - sigmoid(X - far)) + 4 * eps * values",
        "off = values * (1 - values) * far + 4 * eps * values",
        "verify takes what a step in front of a model does to a probability for a difference",
        ("tests/test_stages.py::test_no_errors_of_decisions_lead_further_than_is_told",),
    ),
    Mutant(
        "sqlkrp/maps/thresholds.py",
        "(lower + (upper - lower) / 2).astype(column.dtype)",
        "lower + (upper - lower) / 2",
        "a threshold between two neighbours in single precision is rounded in another way in SQL",
        (
            "tests/test_thresholds.py::"
            "test_neighbours_in_single_precision_are_told_apart_in_every_engine",
        ),
    ),
    Mutant(
        "sqlkrp/projects/examples.py",
        "AS every WHERE {named} IS NULL",
        "AS every WHERE FALSE",
        "a project promises that no key is NULL where one is",
        ("tests/test_dbt.py::test_a_key_that_a_row_lacks_is_refused_wherever_it_is",),
    ),
    Mutant(
        "sqlkrp/stages/closing.py",
        "second = X[:, 0] > stage.middle",
        "second = X[:, 0] < stage.middle",
        "every label of two classes is the other one",
        ("tests/test_models.py::test_every_estimator_says_in_sql_what_it_says_in_python",),
    ),
    Mutant(
        "sqlkrp/sql/answers.py",
        "THEN {labels[1]} ELSE {labels[0]} END",
        "THEN {labels[0]} ELSE {labels[1]} END",
        "the engine says the other label",
        ("tests/test_models.py::test_every_estimator_says_in_sql_what_it_says_in_python",),
    ),
    Mutant(
        "sqlkrp/sql/answers.py",
        'before = [f"{other} < {top}" for other in group[:place]]',
        "before: list[str] = []",
        "of two largest values both have a vote",
        ("tests/test_models.py::test_a_tie_is_the_first_s",),
    ),
    Mutant(
        "sqlkrp/sql/answers.py",
        'lower = [f"({value} - {tops[place // size]})" for place, value in enumerate(values)]',
        'lower = [f"({value})" for place, value in enumerate(values)]',
        "the exponentials of softmax leave the range of numbers",
        ("tests/test_models.py::test_large_decisions_leave_no_range",),
    ),
    Mutant(
        "sqlkrp/sql/answers.py",
        'known["label"] = [levels.if_complete(_label(levels, stage, values, known))]',
        'known["label"] = [_label(levels, stage, values, known)]',
        "a row with a missing value has a label",
        ("tests/test_models.py::test_rows_with_missing_values_have_no_answer",),
    ),
    Mutant(
        "sqlkrp/models/wrappers.py",
        "weights = -slopes[:, None] * inner.weights",
        "weights = slopes[:, None] * inner.weights",
        "calibrated probabilities are those of the other class",
        ("tests/test_models.py::test_every_estimator_says_in_sql_what_it_says_in_python",),
    ),
    Mutant(
        "sqlkrp/models/values.py",
        "shift=(prepare.shift - offset) / scale,",
        "shift=prepare.shift - offset,",
        "scalers in front of the map are folded in wrongly",
        ("tests/test_models.py::test_a_pipeline_s_steps_are_in_the_model",),
    ),
    Mutant(
        "sqlkrp/models/fronts.py",
        "missing = none if value.fill is None else bool(category == value.fill)",
        "missing = none",
        "a missing text that was imputed is no category",
        ("tests/test_categories.py::test_a_pipeline_with_texts_says_the_same_in_every_engine",),
    ),
    Mutant(
        "sqlkrp/models/folding.py",
        "constant = constant + weights @ last.constant",
        "pass",
        "constants of features are lost where sums of sums are one",
        ("tests/test_models.py::test_constants_of_features_are_in_the_model",),
    ),
    Mutant(
        "sqlkrp/models/polynomials.py",
        "rows = inputs.with_constant(1.0).coefficients",
        "rows = inputs.with_constant(0.0).coefficients",
        "terms that lack a factor vanish from the polynomial",
        ("tests/test_models.py::test_a_model_of_a_polynomial_kernel_is_a_polynomial",),
    ),
    Mutant(
        "sqlkrp/models/shortening.py",
        "there = np.append(0, kept)",
        "there = kept",
        "a short model loses its constant",
        ("tests/test_shortening.py",),
    ),
    Mutant(
        "sqlkrp/models/shortening.py",
        "if power % 2 == 0 and least < 0 < most:",
        "if False:",
        "the bound of what is dropped takes a square for negative",
        ("tests/test_shortening.py",),
    ),
    Mutant(
        "sqlkrp/models/shortening.py",
        "np.where(high >= end, np.inf, high)",
        "high",
        "a column that is not held is taken for one with bounds",
        ("tests/test_shortening.py",),
    ),
    Mutant(
        "sqlkrp/models/polynomials.py",
        "np.argsort(-sizes",
        "np.argsort(sizes",
        "the weakest terms are taken for the strongest",
        ("tests/test_shortening.py",),
    ),
    Mutant(
        "sqlkrp/models/fronts.py",
        "one.moved(float(weights.get(name, 1.0)), 0.0)",
        "one.moved(1.0, 0.0)",
        "the weights of a FeatureUnion are not multiplied in",
        ("tests/test_unions.py::test_what_stands_side_by_side_is_in_the_model",),
    ),
    Mutant(
        "sqlkrp/models/together.py",
        "constant = (whole.shift[places] - first.shift) * first.scale",
        "constant = (first.shift - whole.shift[places]) * first.scale",
        "a column that is scaled in two ways is moved the wrong way",
        ("tests/test_unions.py::test_what_stands_side_by_side_is_in_the_model",),
    ),
    Mutant(
        "sqlkrp/models/together.py",
        "numbers = zip(fill.tolist(), low.tolist(), high.tolist(), strict=True)",
        "numbers = [(one, -end, end) for one in fill.tolist()]",
        "outliers that a map holds are no longer held beside columns that are not",
        ("tests/test_unions.py::test_what_stands_side_by_side_is_in_the_model",),
    ),
    Mutant(
        "sqlkrp/models/shortening.py",
        "if one.is_indicator}",
        "}",
        "a column that is read again is taken for one of 0 and 1",
        ("tests/test_shortening.py::test_a_column_that_is_read_again_has_no_bounds_of_the_map_s",),
    ),
    Mutant(
        "sqlkrp/models/together.py",
        "parts.append(_part_of_columns(list(columns.values()), list(scaled.values()), others))",
        "parts.append(_part_of_columns(list(columns.values()), list(columns.values()), others))",
        "terms of columns beside a map are ranked in the columns' own units",
        ("tests/test_shortening.py::test_terms_are_told_apart_in_columns_of_one_scale",),
    ),
    # --- arrays, pivots and declared columns of DuckDB ------------------------------------------
    Mutant(
        "sqlkrp/sql/wide_arrays.py",
        'there = "complete = 1" if levels.complete else ""\n    packed',
        'there = ""\n    packed',
        "rows without features are arrays of NULLs, which have no inner products",
        ("tests/test_planning.py::test_many_weights_are_functions_of_arrays",),
    ),
    Mutant(
        "sqlkrp/sql/planning.py",
        "        if isinstance(stage, SumOfProducts) and before in chosen:",
        "        before = i - 1\n        if isinstance(stage, SumOfProducts) and before in chosen:",
        "products take the signs of sums that they do not read",
        ("tests/test_planning.py::test_paths_are_planned_each_by_itself",),
    ),
    Mutant(
        "sqlkrp/sql/dialects.py",
        'COALESCE("{place}", 0e0)',
        '"{place}"',
        "an entry that is absent is missing, where a pivot gathers rows",
        ("tests/test_agreement.py",),
    ),
    Mutant(
        "sqlkrp/engines/duckdb_writing.py",
        'columns.type != "FLOAT" or ',
        "",
        "features that would get smaller are not compressed",
        ("tests/test_duckdb.py::test_what_gets_smaller_is_compressed",),
    ),
    Mutant(
        "sqlkrp/engines/duckdb_writing.py",
        "types = list(columns.kept.items())",
        "types = []",
        "arrays that are kept are written to Parquet as arrays of a fixed size",
        ("tests/test_duckdb.py::test_parquet_has_groups_of_rows_that_fit_into_memory",),
    ),
    # --- tables that grow -----------------------------------------------------------------------
    Mutant(
        "sqlkrp/engines/asking.py",
        "guard=any_rows or not (",
        "guard=not (",
        "the first rows are written unchecked, where other ones came first when they were checked",
        ("tests/test_growing.py::test_a_limit_is_a_first_look_and_then_the_next_rows",),
    ),
    Mutant(
        "sqlkrp/engines/growing.py",
        " WHERE there.k0 IS NULL)",
        ")",
        "rows that are there are added again",
        (
            "tests/test_growing.py::test_without_a_key_all_rows_are_added",
            "tests/test_growing.py::test_only_new_rows_are_checked_and_computed",
        ),
    ),
    Mutant(
        "sqlkrp/engines/growing.py",
        'order = ", ".join(f"{quote(name, dialect)} ASC" for name in key)',
        'order = ""',
        "of sparse rows, those that are checked and those that are written may be others",
        ("tests/test_growing.py::test_the_first_rows_are_those_of_the_key",),
    ),
    Mutant(
        "sqlkrp/engines/targets.py",
        "if there != target.told:",
        "if there is None:",
        "a table takes rows of another map",
        ("tests/test_growing.py::test_only_the_map_that_made_a_table_adds_to_it",),
    ),
    Mutant(
        "sqlkrp/engines/duckdb_running.py",
        "self.comment(target, self.told(target), view=False)",
        "pass",
        "two connections to DuckDB add the same rows",
        (
            "tests/test_growing.py::"
            "test_a_transaction_that_began_before_others_added_rows_adds_none_again",
        ),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        'self._send(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")',
        "pass",
        "two connections to Postgres add the same rows",
        ("tests/test_growing.py::test_postgres_sees_what_was_added_while_it_waited",),
    ),
    Mutant(
        "sqlkrp/engines/postgres.py",
        'sees_the_latest=own or level.startswith("read")',
        "sees_the_latest=True",
        "a transaction that is older than rows adds them again",
        (
            "tests/test_growing.py::"
            "test_a_transaction_that_began_before_others_added_rows_adds_none_again",
        ),
    ),
    Mutant(
        "sqlkrp/engines/macros.py",
        "parameter = _free_parameter(fitted, options)",
        "parameter = _PARAMETER",
        "a macro takes a column for the name of its table",
        ("tests/test_macros.py::test_no_name_becomes_sql_and_no_column_is_taken_for_the_table",),
    ),
    # --- paths ----------------------------------------------------------------------------------
    Mutant(
        "sqlkrp/sql/levels.py",
        "self.past = [there[value] for value in self.past]",
        "pass",
        "what goes past stages is read where it was before",
        ("tests/test_unions.py::test_values_that_go_past_stages_are_the_same_bit_for_bit",),
    ),
    Mutant(
        "sqlkrp/sql/tables.py",
        '{"place": str(place)}',
        '{"place": "0"}',
        "values beside others have the numbers of these",
        ("tests/test_unions.py::test_values_that_go_past_stages_are_the_same_bit_for_bit",),
    ),
    Mutant(
        "sqlkrp/stages/parts.py",
        "kept.append(its + first)",
        "kept.append(its)",
        "a part of the outputs of paths is another part",
        ("tests/test_stages.py::test_a_part_of_a_stage_gives_what_the_whole_gives",),
    ),
]


# --- running them ---------------------------------------------------------------------------------


def require_places(mutants: Sequence[Mutant]) -> None:
    """Stop with one line for each place that does not stand exactly once in its file."""
    gone = []
    for number, one in enumerate(mutants, start=1):
        path = ROOT / one.file
        found = path.read_text(encoding="utf-8").count(one.old) if path.is_file() else 0
        if found != 1:
            gone.append(f"mutant {number}: {one.old!r} stands {found} times in {one.file}")
    if gone:
        raise SystemExit("\n".join(gone))


def run(tree: Path, tests: Sequence[str], mutant: Mutant | None = None) -> Run:
    """Run tests on a copy of a tree, with a mutant in it or unchanged."""
    with tempfile.TemporaryDirectory(prefix="copy-", dir=tree.parent) as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(tree, copy)
        if mutant is not None:
            path = copy / mutant.file
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        started = time.monotonic()
        code, said = _tested(copy, tests)
        return Run(code, said, time.monotonic() - started)


def _tested(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    scripts = str(Path(sys.executable).parent)
    # The copy's package is the one that is imported, by the installed command as well.
    here = {"PYTHONPATH": str(copy), "PATH": os.pathsep.join([scripts, os.environ["PATH"]])}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "--tb=line",
        "-p",
        "no:cacheprovider",
    ]
    process = subprocess.Popen(
        [*command, *tests],
        cwd=copy,
        env={**os.environ, **here},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
    return process.returncode, said


def files_and_tests(mutants: Sequence[Mutant]) -> list[str]:
    """All tests of some mutants, each once: none by itself whose whole file is there."""
    named = dict.fromkeys(test for one in mutants for test in one.tests)
    return [test for test in named if "::" not in test or test.split("::")[0] not in named]


def verdict(found: Run) -> str:
    """Which test found a mutant; in capitals what is wrong with the proof."""
    if found.failed:
        return found.failed
    if found.code == 0:
        return "SURVIVED"
    last = (found.said.strip().splitlines() or ["nothing was said"])[-1]
    return f"NOT TESTED (pytest's code {found.code}: {last})"


def chosen(only: str | None) -> list[int]:
    """The numbers of the mutants to run, from 1."""
    if only is None:
        return list(range(1, len(MUTANTS) + 1))
    numbers = [int(one) for one in only.split(",")]
    if not all(1 <= number <= len(MUTANTS) for number in numbers):
        raise SystemExit(f"--only {only}: there are mutants 1 to {len(MUTANTS)}")
    return numbers


def main() -> int:
    """Run mutants and print the table of what found them; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="N,M", help="the numbers of the mutants to run")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at a time")
    given = parser.parse_args()
    require_places(MUTANTS)
    numbers = chosen(given.only)
    mutants = [MUTANTS[number - 1] for number in numbers]
    with tempfile.TemporaryDirectory(prefix="sqlkrp-mutants-") as folder:
        # Once, so that nobody's work on the tree meanwhile is half of a copy.
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=NOT_COPIED)
        return proof(tree, numbers, mutants, given.jobs)


def proof(tree: Path, numbers: Sequence[int], mutants: Sequence[Mutant], jobs: int) -> int:
    """Print a line for each mutant, and whether the tests pass where nothing is changed."""
    print("| number | file | what is wrong | found by | seconds |\n| -: | - | - | - | -: |")
    bad = 0
    with ThreadPoolExecutor(jobs) as pool:
        unchanged = pool.submit(run, tree, files_and_tests(mutants))
        runs = pool.map(lambda one: run(tree, one.tests, one), mutants)
        for number, one, found in zip(numbers, mutants, runs, strict=True):
            told = verdict(found)
            bad += not found.failed
            cells = (number, one.file, one.why, told, f"{found.seconds:.1f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        whole = unchanged.result()
    if whole.code != 0:
        print(f"\nThe unchanged copy fails:\n{whole.said}")
    print(f"\n{len(mutants) - bad} of {len(mutants)} mutants found; unchanged copy: {whole.code}")
    return int(bad > 0 or whole.code != 0)


if __name__ == "__main__":
    sys.exit(main())
