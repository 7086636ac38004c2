"""
Your own table
==============

A table of numbers, some of them missing, a few hundred rows, and a class to predict: an estimator that needs no tuning,
compared with a random forest on the same rows.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import fewfire as ff

# %%
# The data
# --------
#
# Replace this by your own file, for example ``pandas.read_csv``: frames are taken as they are, and columns keep their
# names. A tenth of the values is removed here, as happens in real tables.

data = load_breast_cancer(as_frame=True)
table = data.data.mask(np.random.default_rng(0).random(data.data.shape) < 0.1)
X, X_test, y, y_test = train_test_split(table, data.target, train_size=150, random_state=0)
X.iloc[:4, :5]

# %%
# Fit
# ---
#
# Scaling, encodings of the columns, relevance gains, early stopping and temperature are chosen on held-out rows inside
# ``fit``.

model = ff.TabularClassifier(random_state=0).fit(X, y)
model

# %%
# Against a forest
# ----------------
#
# The forest needs the gaps filled first. Accuracy is how often the likeliest class is right, log loss measures the
# probabilities (lower is better).

forest = make_pipeline(SimpleImputer(), RandomForestClassifier(300, min_samples_leaf=3, random_state=0)).fit(X, y)
for name, fitted in (("fewfire", model), ("forest", forest)):
    loss = log_loss(y_test, fitted.predict_proba(X_test))
    print(f"{name}: accuracy {fitted.score(X_test, y_test):.3f}, log loss {loss:.3f}")

# %%
# One split of one table proves little; :doc:`../tabular` has eleven sets, five models and many splits, and describes
# where a forest or boosting is the better choice.
#
# What was chosen
# ---------------
#
# Networks on several encodings were mixed by what they are worth on rows they had not seen.

for variant, weight in sorted(model.mixing_weights_.items(), key=lambda item: -item[1]):
    print(f"{weight:.2f}  {variant}")

# %%
# What the model makes of each column
# -----------------------------------
#
# What is lost when a column is shuffled, on rows that were not trained on, and the mean prediction along the column.

ff.report.plot_effects(model, X_test, y_test, columns=2)

# %%
# Which column alone?
# -------------------
#
# Cut at their medians, the columns have two values, and a polynomial of low degree shows which of them matter beyond
# noise (and from degree 2 on, which products of them). It is a cruder model, but one that can be read.

filled = table.fillna(table.median())
rules = ff.LowDegreeClassifier(degree=1, binarize="median", random_state=0).fit(filled.loc[X.index], y)
print(f"accuracy {rules.score(filled.loc[X_test.index], y_test):.3f}")
print(rules.explain(5))
