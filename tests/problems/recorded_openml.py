"""Answers of openml.org, in the form it gives them, for sets of seven rows: two numbers, a category, two classes.

They are laid where downloads are kept (SCIKIT_LEARN_DATA), so that nothing is asked of the network. `TARGETS` has one
set per shape that the target has among the 16 sets of Table 1: what ARFF declares, and the labels of the rows.
"""

import gzip
import hashlib
import json

TARGETS = {
    "letters": ("class {N,P}", "PNPNNPN"),
    "words": ("class {DOWN,UP}", ["UP", "DOWN", "UP", "DOWN", "DOWN", "UP", "DOWN"]),
    "lower case": ("class {g,h}", "hghgghg"),
    "0 and 1": ("class {0,1}", "1010010"),
    "0 and 1 with spaces": ("class { 0, 1 }", [" 1", " 0", " 1", " 0", " 0", " 1", " 0"]),
    "1 and 2": ("class {1,2}", "2121121"),
    "truth": ("class {False,True}", ["True", "False", "True", "False", "False", "True", "False"]),
    "quoted": ("'class' {'0','1'}", ["'1'", "'0'", "'1'", "'0'", "'0'", "'1'", "'0'"]),
    "double quotes": ('"class" {"0","1"}', ['"1"', '"0"', '"1"', '"0"', '"0"', '"1"', '"0"']),
    "unused classes": ("class {2,1,0}", "1010010"),
    "integers": ("class INTEGER", "1010010"),
    "floats": ("class REAL", ["1.0", "0.0", "1.0", "0.0", "0.0", "1.0", "0.0"]),
    "negative": ("class NUMERIC", ["1", "-1", "1", "-1", "-1", "1", "-1"]),
}
CLASSES = [1, 0, 1, 0, 0, 1, 0]

FEATURES = ("10,red,1.5", "20,blue,2.5", "30,green,3.5", "40,green,4.5", "50,red,5.5", "60,blue,6.5", "70,blue,7.25")


def arff(target="class {N,P}", labels="PNPNNPN", features=FEATURES, age="NUMERIC"):
    rows = "".join(f"{row},{label}\n" for row, label in zip(features, labels, strict=True))
    return (
        f"% made up\n@RELATION tiny\n\n@ATTRIBUTE age {age}\n@ATTRIBUTE 'the colour' {{red, green,blue}}\n"
        f"@attribute height REAL\n@ATTRIBUTE {target}\n@DATA\n{rows}"
    )


def description(number, text, **changes):
    return {
        "id": str(number),
        "name": "tiny",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "file_id": "7",
        "default_target_attribute": "class",
        "md5_checksum": hashlib.md5(text.encode()).hexdigest(),
        "url": "https://api.openml.org/data/v1/download/7/tiny.arff",
        **changes,
    }


def record(folder, number, text=None, **changes):
    """Write the answers for data set `number` below `folder`; `changes` are those of the description."""
    text = arff() if text is None else text
    answers = {
        f"api/v1/json/data/{number}": json.dumps({"data_set_description": description(number, text, **changes)}),
        "data/v1/download/7/tiny.arff": text,
    }
    for path, content in answers.items():
        file = folder / "openml" / "openml.org" / f"{path}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content.encode()))
