from collections import namedtuple

import numpy as np

Metric = namedtuple("Metric", "name task larger_is_better two_classes function")


def _w(y, w):
    return np.ones(len(y)) if w is None else w


def r2(y, p, w=None):
    w = _w(y, w)
    m = np.average(y, weights=w)
    return float(1 - np.average((y - p) ** 2, weights=w) / np.average((y - m) ** 2, weights=w))


def rmse(y, p, w=None):
    return float(np.sqrt(np.average((y - p) ** 2, weights=_w(y, w))))


def mae(y, p, w=None):
    return float(np.average(abs(y - p), weights=_w(y, w)))


def acc(c, p, w=None):
    return float(np.average(p.argmax(1) == c, weights=_w(c, w)))


def ll(c, p, w=None):
    return float(-np.average(np.log(np.clip(p[np.arange(len(c)), c], 1e-15, 1)), weights=_w(c, w)))


def auc(c, p, w=None):
    from sklearn.metrics import roc_auc_score

    return (
        float(roc_auc_score(c, p[:, 1], sample_weight=w))
        if len(set(c.tolist())) > 1
        else float("nan")
    )


def confusion(c, p, w=None):
    n = p.shape[1]
    return np.bincount(c * n + p.argmax(1), _w(c, w), n * n).reshape(n, n)


METRICS = {
    m.name: m
    for m in (
        Metric("r2", "regression", True, False, r2),
        Metric("rmse", "regression", False, False, rmse),
        Metric("mae", "regression", False, False, mae),
        Metric("accuracy", "classification", True, False, acc),
        Metric("log_loss", "classification", False, False, ll),
        Metric("roc_auc", "classification", True, True, auc),
    )
}
