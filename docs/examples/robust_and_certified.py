"""
Robust and certified
====================

Threes and eights, 8 × 8 pixels. How many of them does a network still get right when someone may change every pixel a
little? An attack finds bad images, so it gives an upper bound; a certificate proves that there are none, so it gives a
lower one.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import fewfire as ff

# %%
# Pixels lie between 0 and 1, also under attack, and an image may move by 0.5 in the 2-norm.

X, y = load_digits(return_X_y=True)
chosen = (y == 3) | (y == 8)
X, X_test, y, y_test = train_test_split(X[chosen] / 16, y[chosen], random_state=0)
threat = {"rho": 0.5, "bounds": (0, 1)}

# %%
# Two networks
# ------------
#
# One is trained at the worst points an adversary finds, the other as usual.

robust = ff.RobustClassifier(width=300, random_state=0, **threat).fit(X, y)
plain = MLPClassifier((50,), max_iter=500, random_state=0).fit(X, y)

# %%
# Attacked
# --------
#
# ``robust_score`` is accuracy at the worst images found; it takes scikit-learn's models and PyTorch modules as well.

for name, model in (("robust", robust), ("plain", plain)):
    attacked = ff.robust_score(model, X_test, y_test, **threat)
    print(f"{name}: {model.score(X_test, y_test):.3f} right, {attacked:.3f} under attack")

# %%
# Certified
# ---------
#
# For networks with one hidden layer of ReLUs, ``certify`` bounds the margin from below over the whole ball. What lies
# between the two numbers is not known.

first = slice(0, 30)
for name, model in (("robust", robust), ("plain", plain)):
    proof = ff.certify(model, X_test[first], y_test[first], **threat)
    attacked = ff.robust_score(model, X_test[first], y_test[first], **threat)
    print(f"{name}: between {proof.accuracy:.3f} (proved) and {attacked:.3f} (attacked)")

# %%
# The images themselves
# ---------------------
#
# An eight, and the nearest image of the same reach that the plain network takes for a three.

found = ff.attack(plain, X_test, y_test, **threat)
row = next(i for i in range(len(y_test)) if y_test[i] == 8 and found.success[i])
_, axes = plt.subplots(1, 2, figsize=(5, 2.8))
for axis, title, image in zip(axes, ("an eight", "taken for a three"), (X_test[row], found.X[row]), strict=True):
    axis.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    axis.set_title(title)
    axis.axis("off")

# %%
# :doc:`../robust` describes how the training works and how it compares, :doc:`../certificates` what is proved and how.
