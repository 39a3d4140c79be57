def sigmoid_of(d, t, w=None):
    from sklearn.linear_model import LogisticRegression

    m = LogisticRegression(C=1e6).fit(d[:, None], t, w)
    return float(m.coef_[0, 0]), float(m.intercept_[0])


def multinomial_of(d, c, w=None):
    from sklearn.linear_model import LogisticRegression

    m = LogisticRegression(C=1e3, max_iter=1000).fit(d, c, w)
    return m.coef_, m.intercept_
